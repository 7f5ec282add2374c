"""The cluster-wide objects that Jobs name: Queues and PriorityClasses, as others hand them in and as lists show them.

They are watched by kopf, which does not tell of what vanished while its watch was cut, and which may hear of them only
after the first Job; so whoever reads the Jobs anew reads these first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vcjob.kube.answers import read_listing
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.store import Store

from .decode import read_number

__all__ = ("Raw", "Referred")

Raw = Mapping[str, Any]

OnChange = Callable[[str, Raw | None, Raw | None], None]
"""Called with name, old and new object (None: absent) after each change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    name: str
    uid: str
    version: int  # resourceVersion
    raw: Raw

    @property
    def key(self) -> tuple[str, str]:
        return ("", self.name)


class Referred:
    """One kind, by name."""

    def __init__(self, api: ApiClient, path: str, *, on_change: OnChange) -> None:
        """`path` is the kind's collection."""
        self.known = False  # whether an object that is not here does not exist
        self._api = api
        self._path = path
        self._on_change = on_change
        self._store: Store[_Object] = Store(self._changed, now=steady)

    def get(self, name: str) -> Raw | None:
        found = self._store.get(("", name))
        return None if found is None else found.raw

    def take(self, event: str, raw: Raw) -> None:
        """Take an event of a watch; `event` is its type."""
        if event == "DELETED":
            self._store.deleted(_read(raw))
        else:
            self._store.put(_read(raw))

    async def read(self) -> None:
        """Bring what is known in step with a list. Raises ApiError."""
        listing = read_listing(await self._api.get(self._path), path=self._path)
        listed = [_read(raw) for raw in listing["items"]]
        for item in listed:
            self._store.put(item)
        version = int(listing["metadata"]["resourceVersion"])
        self._store.forget_absent((item.key for item in listed), version=version, namespace=None)
        self.known = True

    def _changed(self, key: tuple[str, str], old: _Object | None, new: _Object | None) -> None:
        self._on_change(key[1], old.raw if old else None, new.raw if new else None)


def _read(raw: Raw) -> _Object:
    meta = raw.get("metadata") or {}
    version = read_number(str(meta.get("resourceVersion")), 0)
    return _Object(name=meta["name"], uid=str(meta.get("uid") or ""), version=version, raw=raw)

"""The store of an informer: the newest known version of each object of a kind.

No I/O and no clock of its own; single-threaded. The law it keeps: knowledge only grows. An older version never replaces
a newer one, whether it came from a list, a watch event or a write of our own, and an object that is known to be gone
does not come back by a belated event. (resourceVersions of one kind compare as integers; the API promises it.)
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

__all__ = ("Key", "OnChange", "Store", "Stored")

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace ("" for cluster-wide kinds) and name."""

_TOMBSTONE_AGE_S: Final = 120.0  # no answer and no event is as late: requests and silent watches end sooner


class Stored(Protocol):
    """What the store needs to know of an object; an immutable value."""

    @property
    def key(self) -> Key: ...

    @property
    def uid(self) -> str: ...

    @property
    def version(self) -> int:
        """The resourceVersion."""
        ...


T = TypeVar("T", bound=Stored)

OnChange = Callable[[Key, T | None, T | None], None]
"""Called with key, old and new item (None: absent) after each change of the store; must not block or raise."""


@dataclass(slots=True, kw_only=True)
class _Tombstone:
    """What we removed under one name, as long as belated events of it may come."""

    since: float
    uids: set[str] = field(default_factory=set)
    version: int = 0  # of the newest that was removed; whatever is older was gone before it


class Store(Generic[T]):
    """Objects by key. Every change is told to `on_change` at once, in the same call."""

    def __init__(self, on_change: OnChange[T], *, now: Callable[[], float]) -> None:
        self._on_change = on_change
        self._now = now
        self._items: dict[Key, T] = {}
        self._gone: dict[Key, _Tombstone] = {}

    # Reading

    @property
    def items(self) -> Mapping[Key, T]:
        """All objects by key: a live, read-only view."""
        return MappingProxyType(self._items)

    def get(self, key: Key) -> T | None:
        return self._items.get(key)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    # Writing

    def put(self, item: T) -> bool:
        """Take an object as it is after an event or a write of our own; False when that was nothing new."""
        key = item.key
        old = self._items.get(key)
        if old is not None and item.version <= old.version:
            return False
        if self._gone and self._is_belated(item):
            return False
        self._items[key] = item
        self._tell(key, old, item)
        return True

    def remove(self, key: Key, *, uid: str) -> bool:
        """Note that the object `uid` is gone, as a write of our own has shown; False when it was not here."""
        old = self._items.get(key)
        known = old is not None and old.uid == uid
        stone = self._bury(key, version=old.version if old is not None and known else 0)
        stone.uids.add(uid)
        if not known:
            return False
        del self._items[key]
        self._tell(key, old, None)
        return True

    def exhume(self, key: Key) -> None:
        """Believe again in an object that was said to be gone: it was read after that."""
        self._gone.pop(key, None)

    def deleted(self, item: T) -> bool:
        """Take a DELETED event; False when the object was gone already or something newer has its name."""
        key = item.key
        # It is the last event, but the answer to a write of our own may still be on its way to `put`: an older version.
        # A newer one of the same object is no ghost: it has left the selector and come back.
        stone = self._bury(key, version=item.version)
        stone.uids.discard(item.uid)
        old = self._items.get(key)
        if old is None or old.version > item.version:
            return False
        del self._items[key]
        self._tell(key, old, None)
        return True

    def forget_absent(self, listed: Iterable[Key], *, version: int, namespace: str | None) -> int:
        """Drop what a list of `version` did not hold, and say how many; `namespace` None means all.

        Objects newer than the list were written after it was made, and stay.
        """
        present = set(listed)
        absent = [
            item
            for key, item in self._items.items()
            if key not in present and item.version <= version and (namespace is None or key[0] == namespace)
        ]
        for item in absent:
            del self._items[item.key]
            self._tell(item.key, item, None)
        return len(absent)

    def _is_belated(self, item: T) -> bool:
        stone = self._gone.get(item.key)
        return stone is not None and (item.uid in stone.uids or item.version <= stone.version)

    def _bury(self, key: Key, *, version: int) -> _Tombstone:
        now = self._now()
        stone = self._gone.pop(key, None) or _Tombstone(since=now)
        stone.since = now
        stone.version = max(stone.version, version)
        self._gone[key] = stone  # at the end: the tombstones stand in order of age
        while len(self._gone) > 1:
            oldest = next(iter(self._gone))
            if self._gone[oldest].since + _TOMBSTONE_AGE_S > now:
                break
            del self._gone[oldest]
        return stone

    def _tell(self, key: Key, old: T | None, new: T | None) -> None:
        try:
            self._on_change(key, old, new)
        except Exception:  # a fault of the listener must not end the watch for all the others
            log.exception("change listener failed", extra={"object": "/".join(key)})

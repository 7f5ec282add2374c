"""Whether a Queue takes a Job, as the API server has it.

Reads the list of Queues, at most once a second. What was read before may let a Job in, so that a slow list delays
nobody, but never denies: a Queue may have been made or opened a moment ago, so a denial is confirmed by reading anew.
Where Queues cannot be read (their CRD is not there, the API server is not well), Jobs are let in: the controller waits
for the Queue then, and says so.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from vcjob.admission.problem import Problem
from vcjob.admission.queues import check_queue
from vcjob.api.names import SCHEDULING_GROUP
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, NotFound

__all__ = ("Queues",)

log = logging.getLogger(__name__)

_PATH: Final = f"/apis/{SCHEDULING_GROUP}/v1beta1/queues"
_FRESH_FOR_S: Final = 1.0
_USABLE_FOR_S: Final = 10.0  # while a fresh one is on its way
_PATIENCE_S: Final = 0.1
_TIMEOUT_S: Final = 2.0  # the API server waits 10 s for the whole answer


class _Metadata(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    parent: str | None = None


class _Status(msgspec.Struct):
    state: str | None = None


class _Queue(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


class _List(msgspec.Struct):
    items: list[_Queue]


_decode: Final = msgspec.json.Decoder(_List).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The Queues at one moment."""

    asked_at: float  # steady; what happened before is in the listing
    states: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, int] = field(default_factory=dict)
    readable: bool = True

    def find_problem(self, name: str) -> Problem | None:
        if not self.readable:
            return None
        queue = {"status": {"state": self.states[name]}} if name in self.states else None
        return check_queue(queue, name, children=self.children.get(name, 0))


class Queues:
    """The Queues of the cluster."""

    def __init__(self, api: ApiClient, *, on_failure: Callable[[], None]) -> None:
        self._api = api
        self._on_failure = on_failure
        self._last: _Listing | None = None
        self._listing: asyncio.Task[_Listing] | None = None

    async def find_problem(self, name: str) -> Problem | None:
        """Return why no Job may be submitted to the Queue of that name."""
        now = steady()
        if (await self._recent(now)).find_problem(name) is None:
            return None
        while self._last is None or self._last.asked_at < now:
            await self._list_again()
        return self._last.find_problem(name)

    async def _recent(self, now: float) -> _Listing:
        """Return a fresh listing; an older one when the API server takes its time."""
        last = self._last
        if last is None or last.asked_at < now - _USABLE_FOR_S:
            return await self._list_again()
        if last.asked_at >= now - _FRESH_FOR_S:
            return last
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._list_again()
        except TimeoutError:
            return last

    async def _list_again(self) -> _Listing:
        """Read anew; all who wait share one call, which goes on when one of them gives up."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list(), name="list queues")
        self._last = await asyncio.shield(self._listing)
        return self._last

    async def _list(self) -> _Listing:
        asked_at = steady()
        try:
            queues = _decode(await self._api.get(_PATH, timeout_s=_TIMEOUT_S)).items
        except NotFound:
            return _Listing(asked_at=asked_at, readable=False)
        except (ApiError, msgspec.DecodeError) as error:
            self._on_failure()
            log.warning("queues cannot be read; jobs are let in", extra={"error": str(error)})
            return _Listing(asked_at=asked_at, readable=False)
        return _Listing(
            asked_at=asked_at,
            states={queue.metadata.name: (queue.status and queue.status.state) or "" for queue in queues},
            children=Counter(queue.spec.parent for queue in queues if queue.spec and queue.spec.parent),
        )

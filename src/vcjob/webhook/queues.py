"""The Queues, as the API server has them, for the rules that ask about them.

Whether a Queue takes a Job or PodGroup is asked often, so the list is read at most once a second for it. What was read
before may let an object in, so that a slow list delays nobody, but never denies: a Queue may have been made or opened a
moment ago, so a denial is confirmed by reading anew. A change of the Queues themselves is judged by a fresh list only,
and what was read before it does not count any more.
Where Queues cannot be read (their CRD is not there, the API server is not well), objects are let in: the controller
waits for the Queue then, and says so.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vcjob.admission.problem import Problem
from vcjob.admission.queue_tree import QueueTree, make_tree
from vcjob.api.names import SCHEDULING_GROUP
from vcjob.kube.answers import read_listing
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, NotFound, NotServed

__all__ = ("Judge", "Queues")

log = logging.getLogger(__name__)

Judge = Callable[[QueueTree], Problem | None]
"""Finds what is wrong, if anything, with the Queues as they are."""

_PATH: Final = f"/apis/{SCHEDULING_GROUP}/v1beta1/queues"
_FRESH_FOR_S: Final = 1.0
_USABLE_FOR_S: Final = 10.0  # while a fresh one is on its way
_PATIENCE_S: Final = 0.1
_TIMEOUT_S: Final = 2.0  # the API server waits 10 s for the whole answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The Queues at one moment."""

    asked_at: float  # steady; what happened before is in the listing
    tree: QueueTree | None = None  # None: they cannot be read

    def find_problem(self, judge: Judge) -> Problem | None:
        return judge(self.tree) if self.tree else None


class Queues:
    """The Queues of the cluster."""

    def __init__(self, api: ApiClient, *, on_failure: Callable[[], None]) -> None:
        self._api = api
        self._on_failure = on_failure
        self._last: _Listing | None = None
        self._listing: asyncio.Task[_Listing] | None = None

    async def find_problem(self, judge: Judge) -> Problem | None:
        """Return what `judge` finds wrong, which it finds in a fresh list too."""
        now = steady()
        if (await self._recent(now)).find_problem(judge) is None:
            return None
        return (await self._since(now)).find_problem(judge)

    async def read(self) -> QueueTree | None:
        """Return all Queues as they are now, before one of them changes; None when they cannot be read."""
        listing = await self._since(steady())
        self._last = None
        return listing.tree

    async def _since(self, moment: float) -> _Listing:
        """Return a listing that was asked for at that moment or later."""
        while self._last is None or self._last.asked_at < moment:
            await self._list_again()
        return self._last

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
            queues = read_listing(await self._api.get(_PATH, timeout_s=_TIMEOUT_S), path=_PATH)["items"]
        except (NotFound, NotServed):
            return _Listing(asked_at=asked_at)
        except ApiError as error:
            self._on_failure()
            log.warning("queues cannot be read; objects are let in", extra={"error": str(error)})
            return _Listing(asked_at=asked_at)
        return _Listing(asked_at=asked_at, tree=make_tree(queues))

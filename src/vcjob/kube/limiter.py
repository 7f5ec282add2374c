"""The limiter: how many requests are in flight at once, and whose turn it is.

Owns no requests; callers hold a slot while theirs is under way. Two laws: callers that wait are served in turn by
namespace, and within one by name, so a Job with ten thousand writes delays one with a single write by one write at
most, and a namespace with a thousand Jobs delays another by no more; and the limit follows the server: it grows while
answers come quickly, halves when the server says that it is too much, and stands still for as long as the server asks.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from types import TracebackType
from typing import Final

from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, ServerError, Throttled, Transient, Unreachable
from vcjob.kube.store import Key

__all__ = ("FairLimiter", "Slot")

_START: Final = 64
_MIN: Final = 4
_MAX: Final = 128  # beyond it an API server only queues
_QUIET: Final = 4  # requests under way
_FAST_S: Final = 0.25  # smoothed; the limit grows below it
_SLOW_S: Final = 1.0  # smoothed; the limit shrinks above it
_SMOOTHING: Final = 0.1  # weight of the newest answer
_PAUSE_MAX_S: Final = 60.0


class FairLimiter:
    """Slots for requests, shared by all keys. For one running loop."""

    def __init__(self, *, start: int = _START, lowest: int = _MIN, highest: int = _MAX) -> None:
        self._limit = float(start)
        self._lowest = float(lowest)
        self._highest = float(highest)
        self._in_flight = 0
        self._load: Counter[str] = Counter()  # by namespace: in flight and waiting
        # By namespace and name, next first: who is served goes to the end of both. None is empty.
        self._lines: OrderedDict[str, OrderedDict[str, deque[asyncio.Future[None]]]] = OrderedDict()
        self._waiters = 0  # without those that were cancelled, which stay in their queues until passed over
        self._latency_s = 0.0  # smoothed
        self._lowered_at = -_PAUSE_MAX_S  # steady
        self._paused_until = 0.0  # steady
        self._resume: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def waiting(self) -> int:
        return self._waiters

    @property
    def busy(self) -> bool:
        """Whether so many requests are under way or waiting that what can wait should."""
        return self._in_flight + self._waiters > _QUIET

    def busy_in(self, namespace: str) -> bool:
        """Return the same of a namespace alone, which need not wait for what others do."""
        return self._load[namespace] > _QUIET

    @property
    def latency_s(self) -> float:
        """Smoothed time for which slots are held."""
        return self._latency_s

    @property
    def paused_s(self) -> float:
        """Seconds until the pause that the server asked for is over; 0 when there is none."""
        return max(0.0, self._paused_until - steady())

    def slot(self, key: Key) -> "Slot":
        """Return a slot for one request on behalf of the object `key`: `async with limiter.slot(key): ...`"""
        return Slot(self, key)

    def report(self, error: ApiError) -> None:
        """Learn from a refusal. A slot that is left by an ApiError reports it by itself."""
        now = steady()
        if isinstance(error, Transient) and error.retry_after:
            self._pause(min(error.retry_after, _PAUSE_MAX_S), now=now)
        too_much = isinstance(error, Throttled | Unreachable) or (
            # A 500 is most often the fault of one webhook and says nothing of the load.
            isinstance(error, ServerError) and error.code in (503, 504)
        )
        if too_much:
            self._lower(0.5, now=now)

    # Slots

    async def acquire(self, key: Key) -> float:
        """Wait for the turn of `key`; return the steady time at which it came."""
        namespace, name = key
        self._load[namespace] += 1
        if not self._lines and self._in_flight < self._limit and not self._paused_until:
            self._in_flight += 1
            return steady()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(namespace, OrderedDict()).setdefault(name, deque()).append(turn)
        self._waiters += 1
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiters -= 1
            else:  # the turn had come already: pass it on
                self._in_flight -= 1
                self._serve()
            self._unload(namespace)
            raise
        return steady()

    def release(self, key: Key, since: float) -> None:
        """Give back a slot that `key` got at `since`."""
        self._unload(key[0])
        now = steady()
        took = now - since
        self._latency_s += (took - self._latency_s) * (_SMOOTHING if self._latency_s else 1.0)
        if self._latency_s <= _FAST_S:
            # One more for each full round of answers, and only when the limit is what holds us back.
            if self._in_flight + 1 >= self._limit and self._limit < self._highest:
                self._limit = min(self._highest, self._limit + 1.0 / self._limit)
        elif self._latency_s > _SLOW_S:
            self._lower(0.9, now=now)
        self._in_flight -= 1
        if self._lines:
            self._serve()

    def _unload(self, namespace: str) -> None:
        self._load[namespace] -= 1
        if not self._load[namespace]:
            del self._load[namespace]

    def _serve(self) -> None:
        if self._paused_until:
            return
        while self._lines and self._in_flight < self._limit:
            namespace, names = next(iter(self._lines.items()))
            name, queue = next(iter(names.items()))
            turn = queue.popleft()
            names.move_to_end(name)
            if not queue:
                del names[name]
            self._lines.move_to_end(namespace)
            if not names:
                del self._lines[namespace]
            if not turn.done():
                self._in_flight += 1
                self._waiters -= 1
                turn.set_result(None)

    # Adapting

    def _lower(self, factor: float, *, now: float) -> None:
        # Once for all the requests that were under way together: they tell of the same overload.
        if now - self._lowered_at < max(self._latency_s, 0.1):
            return
        self._lowered_at = now
        self._limit = max(self._lowest, self._limit * factor)

    def _pause(self, seconds: float, *, now: float) -> None:
        if now + seconds <= self._paused_until:
            return
        self._paused_until = now + seconds
        if self._resume is not None:
            self._resume.cancel()
        self._resume = asyncio.get_running_loop().call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._paused_until = 0.0
        self._resume = None
        self._serve()


class Slot:
    """A slot of a limiter, as a context manager."""

    __slots__ = ("_key", "_limiter", "_since")

    def __init__(self, limiter: FairLimiter, key: Key) -> None:
        self._limiter = limiter
        self._key = key
        self._since = 0.0

    async def __aenter__(self) -> None:
        self._since = await self._limiter.acquire(self._key)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ApiError):
            self._limiter.report(error)
        self._limiter.release(self._key, self._since)

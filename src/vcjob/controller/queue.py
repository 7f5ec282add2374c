"""The work queue: which Job is looked at next.

One entry per key however often it is added; a key that is being worked on waits until that is done; a key can be put
off. Namespaces take turns, and none takes all the room, so that a thousand Jobs of one tenant do not stand before the
single Job of another. For one running loop; time is the loop's clock.
"""

import asyncio
import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vcjob.kube.store import Key

__all__ = ("Key", "QueueStats", "WorkQueue")

_PARALLEL: Final = 256  # keys that are worked on side by side; most of the time they wait for the API server
_SPARE: Final = 256  # more of them ...
_SHARE: Final = 8  # ... for namespaces of which no more than so many are


@dataclass(slots=True, kw_only=True)
class QueueStats:
    """Counters for metrics."""

    adds: int = 0
    retries: int = 0
    waited_s: float = 0.0  # of all keys together, from ready to taken
    taken: int = 0


class WorkQueue:
    """Keys to work on."""

    def __init__(self, *, on_taken: Callable[[float], None] | None = None) -> None:
        """`on_taken` is told how many seconds a key was ready before it was taken."""
        self.stats = QueueStats()
        self._on_taken = on_taken
        self._ready: OrderedDict[str, deque[Key]] = OrderedDict()  # by namespace, next first; none is empty
        self._since: dict[Key, float] = {}  # ready keys -> when they became so
        self._working: dict[Key, bool] = {}  # -> whether it was added again meanwhile
        self._working_in: Counter[str] = Counter()  # by namespace
        self._not_before: dict[Key, float] = {}  # loop time
        self._due: dict[Key, float] = {}  # the earliest time a key was put off to
        self._heap: list[tuple[float, Key]] = []
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._since)

    @property
    def working(self) -> int:
        return len(self._working)

    @property
    def oldest_s(self) -> float:
        """For how many seconds the oldest ready key has been waiting."""
        return asyncio.get_running_loop().time() - min(self._since.values()) if self._since else 0.0

    def add(self, key: Key) -> None:
        """Have the key looked at as soon as its spacing allows."""
        self.stats.adds += 1
        not_before = self._not_before.get(key)
        now = asyncio.get_running_loop().time()
        if not_before is not None and not_before > now:
            self._put_off(key, not_before)
        elif key in self._working:
            self._working[key] = True
        else:
            self._make_ready(key, now)

    def add_after(self, key: Key, delay_s: float) -> None:
        """Have the key looked at in `delay_s` seconds at the latest."""
        self._put_off(key, asyncio.get_running_loop().time() + max(0.0, delay_s))

    async def get(self) -> Key:
        """Return the next key, when there is room for one more; it stays the caller's until `done`."""
        while True:
            now = asyncio.get_running_loop().time()
            self._advance(now)
            namespace = self._next_namespace()
            if namespace is not None:
                keys = self._ready[namespace]
                key = keys.popleft()
                if not keys:
                    del self._ready[namespace]
                self._working[key] = False
                self._working_in[namespace] += 1
                waited = now - self._since.pop(key)
                self.stats.taken += 1
                self.stats.waited_s += waited
                if self._on_taken is not None:
                    self._on_taken(waited)
                return key
            self._wake.clear()
            timeout = max(0.0, self._heap[0][0] - now) if self._heap else None
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _next_namespace(self) -> str | None:
        """Return whose turn it is, and put it at the end; None when nothing is ready, or there is no room for it."""
        found: str | None = None
        if len(self._working) < _PARALLEL:
            found = next(iter(self._ready), None)
        elif len(self._working) < _PARALLEL + _SPARE:
            found = next((name for name in self._ready if self._working_in[name] < _SHARE), None)
        if found is not None:
            self._ready.move_to_end(found)
        return found

    def done(self, key: Key, *, spacing_s: float = 0.0) -> None:
        """Give the key back; it is not looked at again for `spacing_s` seconds."""
        again = self._working.pop(key, False)
        self._working_in[key[0]] -= 1
        if not self._working_in[key[0]]:
            del self._working_in[key[0]]
        self._wake.set()  # there is room for another
        if spacing_s > 0:
            self._not_before[key] = asyncio.get_running_loop().time() + spacing_s
        else:
            self._not_before.pop(key, None)
        if again:
            self.add(key)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a key that is no more."""
        self._not_before.pop(key, None)
        self._due.pop(key, None)

    def _put_off(self, key: Key, due: float) -> None:
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        if self._heap[0][1] == key:
            self._wake.set()

    def _advance(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue  # a later entry replaced it, or the key is gone
            del self._due[key]
            self._not_before.pop(key, None)
            if key in self._working:
                self._working[key] = True
            else:
                self._make_ready(key, now)

    def _make_ready(self, key: Key, now: float) -> None:
        if key in self._since:
            return
        self._since[key] = now
        self._ready.setdefault(key[0], deque()).append(key)
        self._wake.set()

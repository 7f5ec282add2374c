"""What is to be told, and whose turn it is. Owns no clock and does no I/O.

Two laws: a Warning never waits behind anything else; other Events give way while the API server is busy, for as long as
there is room for those that come meanwhile.
"""

import heapq
import itertools
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from vcjob.kube.backoff import patience

__all__ = ("EventQueue",)

_LINE_MAX: Final = 4096  # Warnings, and others
_GIVE_WAY_MAX: Final = 2048  # with more of them waiting, they no longer give way
_LOOK_AGAIN_S: Final = 0.2

T = TypeVar("T")


class EventQueue(Generic[T]):
    """Items with the time from which on they may be told."""

    def __init__(self, *, is_busy: Callable[[], bool], now: Callable[[], float]) -> None:
        """`is_busy` tells whether the API server is, `now` the steady time in seconds."""
        self._is_busy = is_busy
        self._now = now
        self._warnings: list[tuple[float, int, T]] = []  # heaps: when, order, what
        self._others: list[tuple[float, int, T]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._warnings) + len(self._others)

    def put(self, item: T, *, due: float, is_warning: bool) -> bool:
        """Queue an item that is told from the steady time `due` on; False when there is no room for it."""
        line = self._warnings if is_warning else self._others
        if len(line) >= _LINE_MAX:
            return False
        heapq.heappush(line, (due, next(self._order), item))
        return True

    def take(self, *, all_are_due: bool = False) -> T | None:
        """Take the item whose turn it is; None when nothing is due yet, or all that is gives way."""
        for line in (self._warnings, self._others):
            if line and (all_are_due or self._turn(line) <= self._now()):
                return heapq.heappop(line)[2]
        return None

    def wait_s(self) -> float | None:
        """Return in how many seconds it is worth to `take` again, if nothing is put meanwhile; None for never."""
        turns = [self._turn(line) for line in (self._warnings, self._others) if line]
        return max(0.0, min(turns) - self._now()) if turns else None

    def clear(self) -> int:
        """Drop everything; return how much it was."""
        dropped = len(self)
        self._warnings.clear()
        self._others.clear()
        return dropped

    def _turn(self, line: list[tuple[float, int, T]]) -> float:
        """Return the steady time at which it is the turn of the first in a line, as it looks now."""
        due = line[0][0]
        if line is self._warnings or len(line) > _GIVE_WAY_MAX or not self._is_busy():
            return due
        return max(due, min(due + patience(len(line)), self._now() + _LOOK_AGAIN_S))

"""Who waits for a quiet moment: Jobs that have something to write which can give way while Pods are being made."""

from collections.abc import Callable
from typing import Final

from vcjob.kube.limiter import FairLimiter

from .queue import Key

__all__ = ("Quiet",)

_AT_A_TIME: Final = 4  # so that the moment stays quiet


class Quiet:
    """Asks the limiter; for one running loop."""

    def __init__(self, limiter: FairLimiter, *, look: Callable[[Key], None]) -> None:
        """`look` has a Job looked at."""
        self._limiter = limiter
        self._look = look
        self._waiting: dict[Key, None] = {}  # oldest first
        self._going_on: set[Key] = set()  # those whose turn it is

    @property
    def waiting(self) -> int:
        """How many Jobs wait."""
        return len(self._waiting)

    def is_busy(self) -> bool:
        """Return whether so many writes are under way that what can wait should."""
        return self._limiter.busy

    def wait(self, key: Key) -> None:
        """Have the Job looked at when that is over."""
        self._waiting[key] = None

    def done(self, key: Key) -> None:
        """A look at the Job has ended, whatever it was for: perhaps it is the next one's turn."""
        self._going_on.discard(key)
        while self._waiting and len(self._going_on) < _AT_A_TIME and not self.is_busy():
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._going_on.add(key)
            self._look(key)

    def forget(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._going_on.discard(key)

    def begin(self) -> None:
        """Forget whose turn it was when the work ended."""
        self._going_on.clear()

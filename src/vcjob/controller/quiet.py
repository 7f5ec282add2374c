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
        self._waiting: dict[str, dict[Key, None]] = {}  # by namespace, oldest first; none is empty
        self._going_on: set[Key] = set()  # those whose turn it is

    def waiting(self, namespace: str) -> int:
        """Return how many Jobs of the namespace wait."""
        return len(self._waiting.get(namespace, ()))

    def is_busy(self, namespace: str) -> bool:
        """Return whether so many writes are under way in the namespace that what can wait should."""
        return self._limiter.busy_in(namespace)

    def wait(self, key: Key) -> None:
        """Have the Job looked at when that is over."""
        self._waiting.setdefault(key[0], {})[key] = None

    def done(self, key: Key) -> None:
        """A look at the Job has ended, whatever it was for: perhaps it is the next one's turn."""
        self._going_on.discard(key)
        while len(self._going_on) < _AT_A_TIME:
            namespace = next((name for name in self._waiting if not self.is_busy(name)), None)
            if namespace is None:
                return
            key = next(iter(self._waiting[namespace]))
            self._remove(key)
            self._going_on.add(key)
            self._look(key)

    def forget(self, key: Key) -> None:
        self._remove(key)
        self._going_on.discard(key)

    def _remove(self, key: Key) -> None:
        keys = self._waiting.get(key[0])
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._waiting[key[0]]

    def begin(self) -> None:
        """Forget whose turn it was when the work ended."""
        self._going_on.clear()

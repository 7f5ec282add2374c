"""How often Jobs are looked at. Pure but for the time, which the caller gives.

Looking costs the processor something, and Pods that start and end one by one give many occasions. A Job is left alone
for a moment after each look, the longer the more Pods it has; and what can wait waits. Both are the longer the more
looks there have been at all Jobs lately, so that a single Job is followed at once and a thousand do not eat a core.
"""

from math import exp
from typing import Final

__all__ = ("Pace",)

_SHARE: Final = 0.1  # of a core, for looking
_LOOK_S: Final = 350e-6  # what a look costs, with its way through queue and loop ...
_POD_S: Final = 5e-6  # ... and each Pod of the Job adds
_ALONE_S: Final = 0.02  # at least, when looks cost their whole share
_ALONE_MAX_S: Final = 0.5
_DELAY_S: Final = 0.5  # when looks cost their whole share
_MEMORY_S: Final = 1.0


class Pace:
    """Of all Jobs together; times in seconds, on one clock that never goes back."""

    def __init__(self) -> None:
        self._spent = 0.0  # on looks lately; what is longer ago counts less
        self._at = 0.0

    def take(self, now: float, *, pods: int) -> float:
        """Count a look at a Job of so many Pods; return for how many seconds to leave that Job alone."""
        self._fade(now)
        self._spent += _LOOK_S
        return min(_ALONE_MAX_S, max(_ALONE_S * self._load, pods * _POD_S / _SHARE))

    def delay(self, now: float) -> float:
        """Return for how many seconds a look that can wait should."""
        self._fade(now)
        return self._load * _DELAY_S

    @property
    def _load(self) -> float:
        """How much of their share looks have cost lately, 1 at most."""
        return min(1.0, self._spent / _MEMORY_S / _SHARE)

    def _fade(self, now: float) -> None:
        self._spent *= exp((self._at - now) / _MEMORY_S)
        self._at = now

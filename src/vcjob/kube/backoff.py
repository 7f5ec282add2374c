"""Back-off: how long to wait before trying again, or for a quiet moment.

Pure: chance is an argument, so the same call gives the same delay. Delays double up to a cap and are spread, so that
callers that failed together do not come back together.
"""

from typing import Final

__all__ = ("patience", "retry_delay", "spread")

_PATIENCE_S: Final = 10.0
_PATIENCE_EACH_S: Final = 0.03
_PATIENCE_CAP_S: Final = 60.0
_DOUBLINGS_MAX: Final = 64  # beyond it every cap is reached, and 2**attempt would grow without end


def retry_delay(attempt: int, *, chance: float, base_s: float = 0.25, cap_s: float = 60.0) -> float:
    """Return the seconds to wait before the next try.

    Doubles from `base_s` up to `cap_s`; `chance` (0 <= x < 1) spreads it over the upper half. `attempt` counts from 0.
    Raises ValueError when `attempt` is negative.
    """
    if attempt < 0:
        raise ValueError(f"attempt is {attempt}; it counts from 0")
    full = min(cap_s, base_s * 2.0 ** min(attempt, _DOUBLINGS_MAX))
    return full * (0.5 + 0.5 * chance)


def patience(waiting: int) -> float:
    """Return for how many seconds a write that can wait gives way to others, when `waiting` such writes do.

    The more there are, the longer: with their time up they take no more than a small part of what the server can do,
    instead of coming all at once into the middle of what they gave way to.
    """
    return min(_PATIENCE_CAP_S, _PATIENCE_S + _PATIENCE_EACH_S * waiting)


def spread(seconds: float, *, chance: float, share: float = 0.2) -> float:
    """Return `seconds` moved by up to `share` of itself to either side, by `chance` (0 <= x < 1)."""
    return seconds * (1.0 + share * (2.0 * chance - 1.0))

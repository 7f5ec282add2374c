"""Clocks: a steady one for intervals, and the API server's one for timestamps.

`steady` counts on while the machine sleeps, so a lease that ran out during a suspend is seen as run out.
`ServerClock` tells what time the API server thinks it is, because timestamps in objects are the server's: comparing
them with a local clock that is a minute off would fire timers a minute early.
"""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ("ServerClock", "steady")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DRIFT: Final = 200e-6  # of elapsed time; how far two ordinary quartz clocks may part
_JUMP_S: Final = 2.0  # a sample that is farther off than this is a jump, not noise
_JUMP_SAMPLES: Final = 3  # as many in a row that contradict, and agree with each other, are believed

if hasattr(time, "CLOCK_BOOTTIME"):

    def steady() -> float:
        """Return seconds of a clock that never steps and counts while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    steady = time.monotonic


class ServerClock:
    """The API server's time, from the `Date` headers of its answers.

    A header names a whole second, and the answer was made between sending the request and receiving it; so each sample
    bounds the offset from both sides, and the bounds are narrowed by every turn of the server's second. Between samples
    the steady clock counts, so steps of the local wall clock do not matter. Servers that disagree (a control plane of
    several) pull the estimate gently; a jump is followed once several samples in a row agree on it.
    """

    def __init__(self) -> None:
        self._low = 0.0  # bounds of (server's epoch seconds - steady seconds)
        self._high = 0.0
        self._offset: float | None = None
        self._bounded_at = 0.0  # steady
        self._header = ""
        self._last_sent = 0.0  # steady; of the newest sample with `_header`
        self._second = 0.0  # what `_header` says
        self._odd: list[float] = []  # offsets of contradicting samples in a row

    def now(self) -> datetime:
        """Return the server's time in UTC; the local time as long as no answer has been seen."""
        if self._offset is None:
            return datetime.now(UTC)
        return _EPOCH + timedelta(seconds=self._offset + steady())

    def observe(self, header: str, *, sent: float, received: float) -> None:
        """Take a sample: the `Date` header of an answer, and the steady times around the call."""
        if header == self._header:  # nearly always: a few answers a second at least
            if sent > self._last_sent:
                self._last_sent = sent
            return
        try:
            second = parsedate_to_datetime(header).timestamp()
        except (ValueError, TypeError):
            return
        self._close_second()
        self._header, self._second, self._last_sent = header, second, sent
        self._narrow(second - received, second + 1.0 - sent, at=received)

    def _close_second(self) -> None:
        """Use the last sample of the second that is over: it bounds from above best, as the first does from below."""
        high = self._second + 1.0 - self._last_sent
        if self._offset is not None and self._low <= high < self._high:
            self._high = high
            self._offset = (self._low + high) / 2

    def _narrow(self, low: float, high: float, *, at: float) -> None:
        if self._offset is None:
            self._restart(low, high, at=at)
            return
        widened = (at - self._bounded_at) * _DRIFT
        new_low, new_high = max(self._low - widened, low), min(self._high + widened, high)
        if new_low <= new_high:
            self._restart(new_low, new_high, at=at)
            return
        gap = low - self._offset if low > self._offset else high - self._offset
        if abs(gap) <= _JUMP_S:
            self._odd.clear()
            self._offset += gap / 8
            self._low, self._high, self._bounded_at = self._offset - 0.5, self._offset + 0.5, at
            return
        self._odd = [*self._odd[1 - _JUMP_SAMPLES :], (low + high) / 2]
        if len(self._odd) == _JUMP_SAMPLES and max(self._odd) - min(self._odd) <= _JUMP_S:
            self._restart(low, high, at=at)

    def _restart(self, low: float, high: float, *, at: float) -> None:
        self._low, self._high, self._bounded_at = low, high, at
        self._offset = (low + high) / 2
        self._odd.clear()

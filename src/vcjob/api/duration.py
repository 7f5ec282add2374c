"""Durations as the API writes them (`1m30s`, `300ms`, `1.5h`). Pure.

The law: `parse_duration(str(d)) == d` for every duration, and `str` prints what a Go program would print for it.
"""

import re
from dataclasses import dataclass
from typing import Final

__all__ = ("DURATION_PATTERN", "Duration", "InvalidDuration", "parse_duration")

SECOND: Final = 10**9  # nanoseconds
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
LARGEST: Final = 2**63 - 1  # nanoseconds, some 292 years
TEXT_MAX: Final = 256  # characters
# Both Unicode letters that look like a micro sign are accepted.
UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": MINUTE, "h": HOUR}

PART: Final = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
DURATION_PATTERN: Final = rf"^[-+]?(0|({PART})+)$"


class InvalidDuration(ValueError):
    """A text that is no duration."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"{value!r} is not a duration such as 30s, 1m30s or 1.5h")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in whole nanoseconds."""

    nanoseconds: int

    @property
    def seconds(self) -> float:
        """Return the span in seconds."""
        return self.nanoseconds / SECOND

    def __str__(self) -> str:
        if self.nanoseconds == 0:
            return "0s"
        sign = "-" if self.nanoseconds < 0 else ""
        span = abs(self.nanoseconds)
        if span < SECOND:
            unit = next(unit for unit in ("ms", "µs", "ns") if span >= UNITS[unit])
            return f"{sign}{_decimal(span, UNITS[unit])}{unit}"
        hours, rest = divmod(span, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        seconds = f"{_decimal(rest, SECOND)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{seconds}"
        return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def parse_duration(value: object) -> Duration:
    """Read a duration; raises InvalidDuration."""
    if not isinstance(value, str) or len(value) > TEXT_MAX or not re.fullmatch(DURATION_PATTERN, value):
        raise InvalidDuration(value)
    span = sum(_nanoseconds(number, UNITS[unit]) for number, unit in re.findall(PART, value))
    if span > LARGEST:
        raise InvalidDuration(value)
    return Duration(-span if value.startswith("-") else span)


def _nanoseconds(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    part: int = int(fraction or "0") * unit // 10 ** len(fraction)
    return int(whole or "0") * unit + part


def _decimal(span: int, unit: int) -> str:
    whole, rest = divmod(span, unit)
    if not rest:
        return str(whole)
    fraction = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{fraction}"

"""What is wrong with an object, as a value. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ("Problem", "Severity", "denial", "refused")

QUOTED_MAX: Final = 64  # characters of a value that a text repeats


class Severity(Enum):
    """What a problem means for a Job that is in the cluster already."""

    FATAL = "fatal"  # it can never work: the operator fails it at once, whether a webhook runs or not
    REFUSED = "refused"  # no new Job may have it, but one that has it is run by the safe rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong: `field` as kubectl prints paths, the `value` found there, and a sentence with the rule."""

    field: str
    value: object
    message: str
    severity: Severity = Severity.FATAL

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.field}: {self.message}"
        return f"{self.field}: {_quoted(self.value)}: {self.message}"


def refused(field: str, value: object, *, message: str) -> Problem:
    """Return a problem that only new objects are kept from having."""
    return Problem(field=field, value=value, message=message, severity=Severity.REFUSED)


def denial(problems: Iterable[Problem]) -> str:
    """Return the text with which a request is refused."""
    return "; ".join(str(problem) for problem in problems)


def _quoted(value: object) -> str:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= QUOTED_MAX else f"{shown[:QUOTED_MAX]}…"

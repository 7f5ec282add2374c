"""Fields that may hold certain words or numbers only. Pure; never raises."""

from collections.abc import Iterator, Mapping
from typing import Any

from .problem import Problem
from .raw import integer, text

__all__ = ("check_least", "check_words")


def check_words(found: Mapping[str, Any], known: Mapping[str, tuple[str, ...]], *, field: str) -> Iterator[Problem]:
    """Yield each text of `known` that is none of the words it may be; an empty one counts as absent."""
    for name, allowed in known.items():
        if (value := text(found, name)) not in ("", *allowed):
            message = f"Unsupported value: it must be one of {', '.join(allowed)}"
            yield Problem(field=f"{field}.{name}", value=value, message=message)


def check_least(found: Mapping[str, Any], least: Mapping[str, int], *, field: str) -> Iterator[Problem]:
    """Yield each whole number below the least that it may be."""
    for name, limit in least.items():
        if (value := integer(found, name)) is not None and value < limit:
            message = f"must be greater than or equal to {limit}"
            yield Problem(field=f"{field}.{name}", value=value, message=message)

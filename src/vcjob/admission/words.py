"""Fields that may hold certain words, numbers or shapes only. Pure; never raises."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .problem import Problem
from .raw import integer, text

__all__ = ("check_least", "check_lists", "check_words")


def check_words(found: Mapping[str, Any], known: Mapping[str, tuple[str, ...]], *, field: str) -> Iterator[Problem]:
    """Yield each text of `known` that is none of the words it may be; an empty one counts as absent."""
    for name, allowed in known.items():
        if (value := text(found, name)) not in ("", *allowed):
            message = f"Unsupported value: it must be one of {', '.join(allowed)}"
            yield Problem(field=f"{field}.{name}", value=value, message=message)


def check_lists(found: Mapping[str, Any], names: Iterable[str], *, field: str) -> Iterator[Problem]:
    """Yield each field that is no list of objects, where no schema of a CRD has seen to that."""
    for name in names:
        value = found.get(name)
        if value is None:
            continue
        if not isinstance(value, list):
            yield Problem(field=f"{field}.{name}", value=None, message="must be a list of objects")
            continue
        for index, entry in enumerate(value):
            if not isinstance(entry, Mapping):
                yield Problem(field=f"{field}.{name}[{index}]", value=None, message="must be an object")


def check_least(found: Mapping[str, Any], least: Mapping[str, int], *, field: str) -> Iterator[Problem]:
    """Yield each whole number below the least that it may be."""
    for name, limit in least.items():
        if (value := integer(found, name)) is not None and value < limit:
            message = f"must be greater than or equal to {limit}"
            yield Problem(field=f"{field}.{name}", value=value, message=message)

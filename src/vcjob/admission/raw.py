"""Reading of raw objects that may hold anything anywhere. Pure; never raises.

A value of the wrong type counts as absent: what is wrong with it is the business of the API's schema and of `parse`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ("entries", "integer", "items", "mapping", "text")


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """Return the mapping at a path below `value`; an empty one when there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(owner: object, field: str) -> list[Any]:
    """Return the list in a field; an empty one when there is none."""
    value = owner.get(field) if isinstance(owner, Mapping) else None
    return value if isinstance(value, list) else []


def entries(owner: object, field: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mappings of the list in a field, each with its place."""
    for index, value in enumerate(items(owner, field)):
        if isinstance(value, Mapping):
            yield index, value


def text(owner: object, field: str) -> str:
    """Return the text in a field; empty when there is none."""
    value = owner.get(field) if isinstance(owner, Mapping) else None
    return value if isinstance(value, str) else ""


def integer(owner: object, field: str) -> int | None:
    """Return the whole number in a field."""
    value = owner.get(field) if isinstance(owner, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""Reading, and filling in, of raw objects that may hold anything anywhere. Pure; never raises.

A value of the wrong type counts as absent: what is wrong with it is the business of the API's schema and of `parse`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ("entries", "integer", "items", "mapping", "spec_patch", "text")


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


def spec_patch(raw: object, filled: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the JSON patch that sets fields of an object's spec, which need not be there."""
    if filled and not isinstance(mapping(raw).get("spec"), Mapping):
        return ({"op": "add", "path": "/spec", "value": dict(filled)},)
    return tuple({"op": "add", "path": f"/spec/{name}", "value": value} for name, value in filled.items())

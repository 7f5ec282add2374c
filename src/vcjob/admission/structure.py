"""What the API server refuses by the CRD's schema alone, before any webhook. Pure; never raises.

Read from the very schema that the CRD is generated with, so that there is no second list of rules to keep. Types are
not judged here, `api.strict` names them; CEL rules each have their counterpart in `validation`.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

from vcjob.api.base import INT32_MAX, INT64_MAX
from vcjob.api.schema import Schema

from .problem import Problem

__all__ = ("check_structure",)

RANGES: Final = {"int32": (-INT32_MAX - 1, INT32_MAX), "int64": (-INT64_MAX - 1, INT64_MAX)}


def check_structure(value: object, *, schema: Schema, field: str = "") -> Iterator[Problem]:
    """Yield what the schema forbids about a value, and about everything in it; `field` is the path of the value."""
    if value is None:  # the same as absent
        return
    for message in _messages(value, schema):
        yield Problem(field=field, value=value if isinstance(value, str | int | float) else None, message=message)
    if isinstance(value, Mapping):
        yield from _check_fields(value, schema, field=field)
    elif isinstance(value, list):
        yield from _check_entries(value, schema, field=field)


def _messages(value: object, schema: Schema) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"Unsupported value: supported values: {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _length_messages(len(value), schema, what="Length", unit="chars long")
        # Every pattern of a CRD of ours is anchored, and `$` of Go does not pass over a line's end as Python's does.
        if "pattern" in schema and re.fullmatch(schema["pattern"], value) is None:
            yield f"should match '{schema['pattern']}'"
    elif isinstance(value, list):
        yield from _length_messages(len(value), schema, what="Items", unit="items")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        least, most = RANGES.get(schema.get("format", ""), (None, None))
        least, most = schema.get("minimum", least), schema.get("maximum", most)
        if least is not None and value < least:
            yield f"should be greater than or equal to {least}"
        if most is not None and value > most:
            yield f"should be less than or equal to {most}"


def _length_messages(length: int, schema: Schema, *, what: str, unit: str) -> Iterator[str]:
    if length < schema.get(f"min{what}", 0):
        yield f"should be at least {schema[f'min{what}']} {unit}"
    if length > schema.get(f"max{what}", length):
        yield f"should be at most {schema[f'max{what}']} {unit}"


def _check_fields(value: Mapping[Any, Any], schema: Schema, *, field: str) -> Iterator[Problem]:
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield Problem(field=_below(field, name), value=None, message="Required value")
    known = schema.get("properties")
    others = schema.get("additionalProperties")
    for name, child in value.items():
        if known is not None:
            yield from check_structure(child, schema=known.get(name, {}), field=_below(field, name))
        elif isinstance(others, Mapping):
            yield from check_structure(child, schema=dict(others), field=f"{field}[{name}]")


def _check_entries(value: list[Any], schema: Schema, *, field: str) -> Iterator[Problem]:
    items = schema.get("items", {})
    seen: set[Hashable] = set()
    for index, entry in enumerate(value):
        path = f"{field}[{index}]"
        if (key := _key(entry, schema)) is not None:
            if key in seen:
                shown = ", ".join(map(str, key))
                yield Problem(field=path, value=shown, message="Duplicate value")
            seen.add(key)
        yield from check_structure(entry, schema=items, field=path)


def _key(entry: Any, schema: Schema) -> tuple[Hashable, ...] | None:
    """Return what no other entry of the list may have; None when any may have it."""
    kind = schema.get("x-kubernetes-list-type")
    key: tuple[Any, ...] = ()
    if kind == "set":
        key = (entry,)
    elif kind == "map" and isinstance(entry, Mapping):
        fields = schema["items"]["properties"]
        key = tuple(entry.get(name, fields[name].get("default")) for name in schema["x-kubernetes-list-map-keys"])
    return key if key and all(isinstance(part, str | int | float) for part in key) else None


def _below(field: str, name: object) -> str:
    return f"{field}.{name}" if field else str(name)

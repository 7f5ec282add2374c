"""Reading an object as the API server does it: by the CRD's own schema, and strictly. Pure; never raises.

A field that the schema does not have is named with its path and left out, as the API server drops it; a value of
another type is named and kept. What the values mean is the business of the models and of admission.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from .base import INT64_MAX
from .schema import Schema

__all__ = ("Decoded", "decode_strictly")

# Of metav1.ObjectMeta: the schema of a CRD says nothing about an object's own metadata.
METADATA_FIELDS: Final = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **{name: {} for name in METADATA_FIELDS},
        **{name: {"type": "string"} for name in ("name", "generateName", "namespace", "uid")},
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """An object as the API server would read it."""

    value: Any  # without the unknown fields
    unknown: tuple[str, ...]  # a sentence for each unknown field
    mistyped: tuple[str, ...]  # a sentence for each value of another type


def decode_strictly(raw: Any, *, schema: Schema) -> Decoded:
    """Read a whole object by its CRD's schema."""
    walk = _Walk()
    value = walk.node(raw, {**schema, "properties": {**schema["properties"], "metadata": METADATA}}, path="")
    return Decoded(value=value, unknown=tuple(walk.unknown), mistyped=tuple(walk.mistyped))


class _Walk:
    """One pass over an object and its schema."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mistyped: list[str] = []

    def node(self, value: Any, schema: Schema, *, path: str) -> Any:
        if value is None:  # the same as absent, in every field of these kinds; an entry of a list cannot be absent
            if path.endswith("]") and "type" in schema:
                self.mistyped.append(f"{path}: must be of type {schema['type']}, not null")
            return value
        if wanted := _other_type(value, schema):
            self.mistyped.append(f"{path}: must be of type {wanted}, not {_type_of(value)}")
            return value
        if isinstance(value, dict):
            return dict(self._fields(value, schema, path=path))
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self.node(item, items, path=f"{path}[{index}]") for index, item in enumerate(value)]
        return value

    def _fields(self, value: dict[Any, Any], schema: Schema, *, path: str) -> Iterator[tuple[Any, Any]]:
        known = schema.get("properties")
        others = schema.get("additionalProperties", {})
        for name, child in value.items():
            where = f"{path}.{name}" if path else str(name)
            if known is None:
                yield name, self.node(child, others, path=where)
            elif name in known:
                yield name, self.node(child, known[name], path=where)
            else:
                close = get_close_matches(str(name), known, n=1)
                self.unknown.append(f'unknown field "{where}"' + (f"; did you mean {close[0]}?" if close else ""))


def _other_type(value: Any, schema: Schema) -> str:
    """Return the type that a value should have; empty when it has it, or when any will do."""
    if schema.get("x-kubernetes-int-or-string"):
        return "" if _type_of(value) in ("integer", "string") else "integer or string"
    wanted = str(schema.get("type", ""))
    found = _type_of(value)
    return "" if not wanted or found == wanted or (found, wanted) == ("integer", "number") else wanted


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        return "number"  # a larger one is read as a fraction
    for kind, name in ((dict, "object"), (list, "array"), (str, "string"), (int, "integer"), (float, "number")):
        if isinstance(value, kind):
            return name
    return type(value).__name__

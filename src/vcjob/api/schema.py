"""Structural schemas for CRDs: from our models, and from the API server's OpenAPI for the core types in them. Pure.

A structural schema has no references, one type at every node, and only the keywords that CRDs allow. Two laws: a field
that the core schema does not know is not kept, and a default is there only where the core types say that it belongs to
the schema (a zero value of a required field, which OpenAPI prints too, would let incomplete objects in).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .base import INT32_MAX, Model
from .resources import QUANTITY_SCHEMA

__all__ = ("Schema", "core_schema", "model_schema", "needed_schemas")

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

CORE_KEYWORDS: Final[tuple[str, ...]] = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
MODEL_KEYWORDS: Final[tuple[str, ...]] = (
    "description",
    "type",
    "format",
    "nullable",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "anyOf",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
# The API server itself owns the rest of an object's metadata, and a template has none of it.
TEMPLATE_METADATA: Final[Schema] = {
    "type": "object",
    "description": "Labels and annotations of each Pod; the name is given by the Job.",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}


def model_schema(
    model: type[Model], *, core: Mapping[str, Schema], rules: Mapping[str, list[Schema]] | None = None
) -> Schema:
    """Return the structural schema of a kind; `rules` are its CEL rules by the name of the model they are for."""
    document = model.model_json_schema(by_alias=True)
    walk = _ModelWalk(definitions=document.get("$defs", {}), core=core, rules=rules or {})
    schema = walk.node(document)
    for name in ("apiVersion", "kind"):
        schema["properties"][name] = {"type": "string"}
    schema["properties"]["metadata"] = {"type": "object"}
    schema["required"] = [name for name in schema.get("required", ()) if name != "metadata"]
    return _without_empty(schema)


def core_schema(name: str, *, core: Mapping[str, Schema]) -> Schema:
    """Return the structural schema of a core type, without its descriptions (they would double the CRD's size)."""
    if name == QUANTITY:
        return dict(QUANTITY_SCHEMA)
    if name == INT_OR_STRING:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if name == OBJECT_META:
        return dict(TEMPLATE_METADATA)
    return _core_node(core[name], core=core)


def needed_schemas(roots: Iterable[str], *, core: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the types that the roots lead to, reduced to what `core_schema` reads, in the order of their names."""
    found: dict[str, Schema] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name in (QUANTITY, INT_OR_STRING, OBJECT_META):
            continue
        found[name] = _without_prose(core[name])
        waiting += _references(core[name])
    return {name: found[name] for name in sorted(found)}


class _ModelWalk:
    """One pass over a pydantic JSON schema."""

    def __init__(
        self, *, definitions: Mapping[str, Schema], core: Mapping[str, Schema], rules: Mapping[str, list[Schema]]
    ) -> None:
        self.definitions = definitions
        self.core = core
        self.rules = rules

    def node(self, source: Schema) -> Schema:
        source = self._resolved(source)
        if "x-core" in source:
            described = {key: source[key] for key in ("description",) if key in source}
            return described | core_schema(source["x-core"], core=self.core)
        result = {key: source[key] for key in MODEL_KEYWORDS if key in source}
        if source.get("exclusiveMaximum") == INT32_MAX + 1:
            result["format"] = "int32"
        if result.get("minimum", 0) < -1:
            del result["minimum"]
        if "items" in source:
            result["items"] = self.node(source["items"])
        if isinstance(source.get("additionalProperties"), dict):
            result["additionalProperties"] = self.node(source["additionalProperties"])
        if "properties" in source:
            result["properties"] = {name: self._property(child) for name, child in source["properties"].items()}
            result["required"] = list(source.get("required", ()))
        if rules := self.rules.get(source.get("title", "")):
            result["x-kubernetes-validations"] = rules
        return _without_empty(result)

    def _property(self, source: Schema) -> Schema:
        result = self.node(source)
        # What pydantic calls a default is how we read an absent field; the API server fills in only what is marked.
        if "x-default" in source:
            result["default"] = source["x-default"]
        else:
            result.pop("default", None)
        return result

    def _resolved(self, source: Schema) -> Schema:
        """Follow references and drop the `null` alternative; keywords beside them win."""
        beside = {key: value for key, value in source.items() if key not in ("$ref", "anyOf", "title")}
        if "$ref" in source:
            return self._resolved(self.definitions[source["$ref"].rpartition("/")[2]]) | beside
        choices = [choice for choice in source.get("anyOf", ()) if choice.get("type") != "null"]
        if len(choices) == 1:
            return self._resolved(choices[0]) | beside
        return source


def _core_node(source: Schema, *, core: Mapping[str, Schema]) -> Schema:
    if reference := _reference(source):
        return core_schema(reference, core=core)
    result = {key: source[key] for key in CORE_KEYWORDS if key in source}
    if result.get("x-kubernetes-list-type") == "atomic" or result.get("x-kubernetes-map-type") == "granular":
        # Both are what an absent keyword means (lists) or nearly every map has; a CRD need not repeat it.
        result.pop("x-kubernetes-list-type", None)
        result.pop("x-kubernetes-map-type", None)
    if "items" in source:
        result["items"] = _core_node(source["items"], core=core)
    if isinstance(source.get("additionalProperties"), dict):
        result["additionalProperties"] = _core_node(source["additionalProperties"], core=core)
    if "properties" in source:
        required = source.get("required", ())
        result["properties"] = {}
        for name, child in source["properties"].items():
            node = _core_node(child, core=core)
            if name not in required and child.get("default") not in (None, {}):
                node["default"] = child["default"]
            result["properties"][name] = node
    return result


def _reference(source: Schema) -> str | None:
    """Return the type that a node refers to, directly or as its only `allOf`."""
    target = source.get("$ref") or next((part["$ref"] for part in source.get("allOf", ()) if "$ref" in part), None)
    return target.removeprefix(REF) if isinstance(target, str) else None


def _references(source: Any) -> list[str]:
    if isinstance(source, list):
        return [name for part in source for name in _references(part)]
    if isinstance(source, dict):
        own = [reference] if (reference := _reference(source)) else []
        return own + [name for part in source.values() for name in _references(part)]
    return []


def _without_prose(source: Any) -> Any:
    if isinstance(source, list):
        return [_without_prose(part) for part in source]
    if not isinstance(source, dict):
        return source
    kept = {}
    for key, value in source.items():
        if key == "properties":
            kept[key] = {name: _without_prose(child) for name, child in value.items()}
        elif key in (*CORE_KEYWORDS, "$ref", "allOf", "items", "additionalProperties", "default"):
            kept[key] = _without_prose(value)
    return kept


def _without_empty(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if value not in ([], "")}

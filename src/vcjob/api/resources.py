"""Resource lists: amounts by resource name, as objects carry them."""

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema

__all__ = ("QUANTITY_SCHEMA", "ResourceList")

QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}

ResourceList = dict[str, Annotated[str | int | float, WithJsonSchema(QUANTITY_SCHEMA)]]

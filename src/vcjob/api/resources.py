"""Resource lists: amounts by resource name, as objects carry them and as numbers. Pure."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import WithJsonSchema

from .quantity import Quantity, parse_quantity

__all__ = ("QUANTITY_SCHEMA", "ResourceList", "add_resources", "parse_resources", "print_resources")

QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}

ResourceList = dict[str, Annotated[str | int | float, WithJsonSchema(QUANTITY_SCHEMA)]]


def parse_resources(raw: Mapping[str, object]) -> dict[str, Quantity]:
    """Read a resource list; raises InvalidQuantity at the first bad amount."""
    return {name: parse_quantity(amount) for name, amount in raw.items()}


def add_resources(*lists: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return the sum, resource by resource."""
    total: dict[str, Quantity] = {}
    for one in lists:
        for name, amount in one.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def print_resources(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Return the list as the API server would store it, in the order of the names."""
    return {name: str(amounts[name]) for name in sorted(amounts)}

"""CEL rules of the CRDs, by the model that they are for. Pure data."""

from typing import Any, Final

__all__ = ("RULES",)

RULES: Final[dict[str, list[dict[str, Any]]]] = {}

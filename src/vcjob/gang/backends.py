"""The gang back ends by the names that `--gang-scheduler` has for them."""

from typing import Final

from .base import Gang
from .none import NoGang
from .volcano import VolcanoGang

__all__ = ("BACKENDS",)

BACKENDS: Final[dict[str, type[Gang]]] = {"none": NoGang, "volcano": VolcanoGang}

"""Kubernetes quantities (`500m`, `1.5Gi`, `2e3`): exact arithmetic and the API server's own spelling. Pure.

The law: `parse(str(q)) == q` for every quantity, and `str` prints what the API server would store, so that a sum that
was computed here can be compared as text with one that the server canonicalised. Values are whole billionths, the
finest that the API knows; a finer one is rounded away from zero, and one with a binary suffix is cut at 63 bits, as the
server does it.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import total_ordering
from typing import Final

__all__ = ("InvalidQuantity", "Quantity", "QuantityForm", "parse_quantity")

NANO: Final = 10**9
LARGEST: Final = 2**63 - 1  # whole units
EXPONENT_MAX: Final = 400  # powers of ten; keeps `1e999999999` from eating memory
TEXT_MAX: Final = 256  # characters

GRAMMAR: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)

DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in DECIMAL_EXPONENTS.items()}
BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class InvalidQuantity(ValueError):
    """A text that is no quantity."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"{value!r} is not a quantity such as 500m, 2, 1.5Gi or 1e3")


class QuantityForm(Enum):
    """How a quantity was written, and is written again."""

    BINARY = "binary"  # Ki, Mi, Gi
    DECIMAL = "decimal"  # m, k, M
    EXPONENT = "exponent"  # e3


@total_ordering
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An amount of a resource; equal and ordered by amount, whatever the spelling."""

    nano: int  # billionths of the unit
    form: QuantityForm = field(default=QuantityForm.DECIMAL, compare=False)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(nano=self.nano + other.nano, form=self.form if self.nano else other.form)

    def __mul__(self, times: int) -> "Quantity":
        return Quantity(nano=self.nano * times, form=self.form)

    def __bool__(self) -> bool:
        return self.nano != 0

    @property
    def value(self) -> int:
        """Return whole units, rounded up."""
        return -(-self.nano // NANO)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left behind the decimal point."""
        return self.nano % NANO == 0

    def __str__(self) -> str:
        if self.nano == 0:
            return "0"
        # Below 1024 and for fractions a binary suffix would round, so the server falls back to decimals.
        if self.form is QuantityForm.BINARY and self.is_whole and abs(self.nano) >= 1024 * NANO:
            return _binary_text(self.nano // NANO)
        return _decimal_text(self.nano, exponent_form=self.form is QuantityForm.EXPONENT)


def parse_quantity(value: object) -> Quantity:
    """Read a quantity as it stands in an object: a text, or a plain number. Raises InvalidQuantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidQuantity(value)
    text = value.strip() if isinstance(value, str) else repr(value)
    match = GRAMMAR.fullmatch(text) if len(text) <= TEXT_MAX else None
    if match is None:
        raise InvalidQuantity(value)
    sign, digits, exponent_mark, exponent, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    mantissa = int(f"{whole}{fraction}" or "0")
    power = 9 - len(fraction)
    scale = 1
    form = QuantityForm.DECIMAL
    if exponent_mark:
        form = QuantityForm.EXPONENT
        if int(exponent) > EXPONENT_MAX:
            raise InvalidQuantity(value)
        power += max(-EXPONENT_MAX, int(exponent))
    elif suffix in BINARY_SUFFIXES and suffix:
        form = QuantityForm.BINARY
        scale = 1024 ** BINARY_SUFFIXES.index(suffix)
    else:
        power += DECIMAL_EXPONENTS[suffix or ""]
    product = mantissa * scale
    nano = product * 10**power if power >= 0 else -(-product // 10**-power)
    if form is QuantityForm.BINARY:
        nano = min(nano, LARGEST * NANO)
    if nano >= 10**EXPONENT_MAX:
        raise InvalidQuantity(value)
    return Quantity(nano=-nano if sign == "-" else nano, form=form)


def _binary_text(units: int) -> str:
    step = 0
    while units % 1024 == 0 and step < len(BINARY_SUFFIXES) - 1:
        units //= 1024
        step += 1
    return f"{units}{BINARY_SUFFIXES[step]}"


def _decimal_text(nano: int, *, exponent_form: bool) -> str:
    exponent = -9
    while nano % 1000 == 0 and (exponent < 18 or exponent_form):
        nano //= 1000
        exponent += 3
    if exponent_form:
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{DECIMAL_SUFFIXES[exponent]}"

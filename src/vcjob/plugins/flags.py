"""The arguments of a plugin: Go's flag syntax, read so that nothing valid is ever lost.

Pure. `-name`, `--name`, `--name=value` and `--name` followed by its value in the next element are understood; a boolean
takes its value only after `=`. An element that is not understood becomes a note and costs only itself: parsing goes on
behind it, the last valid mention of a flag wins, and the other flags keep their defaults. Texts quote no more than the
beginning of a value, because a value may be a private key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from .base import Flag, Note, Reason, Value

__all__ = ("PORT_MAX", "Arguments", "parse_arguments")

PORT_MAX: Final = 65535
BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
# A leading zero means octal, as in Go.
INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>(?:_?[0-9a-fA-F])+)|0[bB](?P<bin>(?:_?[01])+)|0[oO]?(?P<oct>(?:_?[0-7])+)"
    r"|(?P<dec>0|[1-9](?:_?[0-9])*))",
    re.ASCII,
)
BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
INT64_DIGITS: Final = 64  # no 64-bit number has more digits, in whatever base
QUOTED_MAX: Final = 48  # characters of an element that a text repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The value of every flag of a plugin, and what was wrong with the elements that gave none."""

    values: Mapping[str, Value]
    notes: tuple[Note, ...]


class _Refused(ValueError):
    """A value does not fit its flag; the text ends a sentence."""


def parse_arguments(elements: Sequence[str], *, plugin: str, flags: Sequence[Flag]) -> Arguments:
    """Read the argument list of a plugin. Never raises, whatever the elements are."""
    known = {name: flag for flag in flags for name in (flag.name, *flag.aliases)}
    values = {flag.name: flag.default for flag in flags}
    notes: list[Note] = []

    def refuse(element: str, problem: str) -> None:
        text = f"{plugin}: argument {_quoted(element)} is ignored: {problem}"
        notes.append(Note(reason=Reason.ARGUMENT, message=text))

    rest = list(reversed(elements))
    bare: Flag | None = None  # the boolean without a value that stands right before
    while rest:
        element = rest.pop()
        before, bare = bare, None
        name, equals, value = _split(element)
        flag = known.get(name)
        if not name:
            refuse(element, _no_flag(element, before))
            continue
        if flag is None:
            refuse(element.partition("=")[0], _unknown(name, plugin=plugin, known=known))
            continue
        if not equals and flag.kind is bool:
            bare = flag
            value = "true"
        elif not equals:
            # A following flag is never meant as a value; anything else is, even with dashes: a PEM key begins so.
            if not rest or _split(rest[-1])[0] in known:
                refuse(element, f"its value is missing; write --{flag.name}={_example(flag)}")
                continue
            value = rest.pop()
        try:
            values[flag.name] = _value(value, flag)
        except _Refused as refused:
            refuse(element, f"{refused}; {flag.name} stays {_shown(values[flag.name])}")
    return Arguments(values=values, notes=tuple(notes))


def _split(element: str) -> tuple[str, str, str]:
    """Return a flag's name, its equals sign and what follows; the name is empty when the element is no flag."""
    dashes = len(element) - len(element.lstrip("-"))
    if dashes not in (1, 2):
        return "", "", ""
    return element[dashes:].partition("=")


def _value(text: str, flag: Flag) -> Value:
    if flag.kind is bool:
        if text not in BOOLEANS:
            raise _Refused(f"{_quoted(text)} is not a boolean, use true or false")
        return BOOLEANS[text]
    if flag.kind is int:
        return _integer(text, flag)
    if not text and flag.default:
        raise _Refused("its value is empty")
    return text


def _integer(text: str, flag: Flag) -> int:
    match = INTEGER.fullmatch(text)
    if match is None:
        raise _Refused(f"{_quoted(text)} is not a whole number")
    base, digits = next((BASES[name], match[name]) for name in BASES if match[name] is not None)
    digits = digits.replace("_", "").lstrip("0") or "0"
    low = -(2**63) if flag.minimum is None else flag.minimum
    high = 2**63 - 1 if flag.maximum is None else flag.maximum
    number = int(match["sign"] + digits, base) if len(digits) <= INT64_DIGITS else None
    if number is None or not low <= number <= high:
        raise _Refused(f"{_quoted(text)} is not between {low} and {high}")
    return number


def _unknown(name: str, *, plugin: str, known: Mapping[str, Flag]) -> str:
    if not known:
        return f"{plugin} takes no arguments"
    nearest = get_close_matches(name[:QUOTED_MAX], known, n=1)
    hint = f"did you mean --{nearest[0]}? " if nearest else ""
    return f"there is no such argument; {hint}{plugin} knows {', '.join(f'--{name}' for name in known)}"


def _no_flag(element: str, before: Flag | None) -> str:
    if before is not None and element in BOOLEANS:
        return f"a boolean takes its value after an equals sign; write --{before.name}={element}"
    return "it is not of the form --name=value"


def _example(flag: Flag) -> str:
    return str(flag.default) if flag.default else "VALUE"


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else _quoted(str(value))


def _quoted(text: str) -> str:
    if len(text) <= QUOTED_MAX and text.isprintable():
        return f'"{text}"'
    beginning = "".join(c if c.isprintable() else " " for c in text[:16])
    return f'"{beginning}…" ({len(text)} characters)'

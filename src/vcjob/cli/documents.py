"""The documents of a file as kubectl reads them, and YAML as a person writes it."""

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any, Final

import yaml

__all__ = ("Dumper", "Loader", "load_documents")

BEFORE_JSON: Final = re.compile(r"\s*(?:---\s+)*(?={)")
WITH_BASE: Final = re.compile(r"[-+]?0(x[0-9a-fA-F]+|b[01]+|o?[0-7]+)")
WORDS: Final = {  # without quotes they are no texts
    "null": r"~|null|Null|NULL|",
    "merge": "<<",
    "bool": "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
    "int": r"[-+]?(0x[0-9a-fA-F_]+|0b[01_]+|0o[0-7_]+|(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?)",
}


class Dumper(yaml.SafeDumper):
    """YAML as a person writes it: no anchors, several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _represent_text)


class Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: a key stands once in a mapping and is a text; dates and times are texts."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own way; each class adds to its own

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f'key "{key.value}" already set in map'
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        return {_key(key): value for key, value in super().construct_mapping(node, deep=deep).items()}

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        """Return a whole number however it is written, for in JSON they are all alike. Raises ValueError."""
        word = self.construct_scalar(node).replace("_", "")
        if WITH_BASE.fullmatch(word):
            return int(re.sub(r"^([-+]?)0(?=[0-7])", r"\g<1>0o", word), 0)
        if word.lstrip("+-").isdecimal():
            return int(word)
        return _number(word)

    def construct_truth(self, node: yaml.ScalarNode) -> bool:
        """Return whether the word is one of the true ones."""
        return self.construct_scalar(node).lower() in ("y", "yes", "true", "on")


def _number(word: str) -> float | int:
    number = float(word)
    return int(number) if number.is_integer() else number


def _key(key: Hashable) -> Hashable:
    if isinstance(key, bool):
        return str(key).lower()
    return str(key) if isinstance(key, int | float) else key


def load_documents(content: bytes) -> Iterator[Any]:
    """Yield the documents of a file as kubectl takes it: objects of JSON one after the other, and what follows as YAML.

    Raises yaml.YAMLError, ValueError and RecursionError for what is neither.
    """
    text = content.decode(errors="replace")  # what is no UTF-8 is no JSON, and YAML has the words for it
    at = 0
    while before := BEFORE_JSON.match(text, at):
        try:
            value, at = _JSON.raw_decode(text, before.end())
        except json.JSONDecodeError:
            break
        yield value
    if at == 0:
        yield from yaml.load_all(content, Loader=Loader)
    elif text[at:].strip():
        # Blank lines in its place, so that an error names the right one.
        yield from yaml.load_all("\n" * text.count("\n", 0, at) + text[at:], Loader=Loader)


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'key "{next(key for key in keys if keys.count(key) > 1)}" already set in map')
    return value


def _json_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


_JSON: Final = json.JSONDecoder(object_pairs_hook=_json_object, parse_float=_number, parse_constant=_json_constant)

for _tag, _words in WORDS.items():
    for _reader in (Loader, Dumper):  # the Dumper puts what would be read as something else between quotes
        _reader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_words})$"), None)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_number)
Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_number)
Loader.add_constructor("tag:yaml.org,2002:bool", Loader.construct_truth)

"""A small item and its decoder, as a controller would write them for a kind that it follows."""

import msgspec

from vcjob.kube.store import Key

__all__ = ("Item", "decode", "item")


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta
    value: int = 0


class _Event(msgspec.Struct):
    type: str
    object: _Object


class Item(msgspec.Struct, frozen=True):
    key: Key
    uid: str
    version: int
    value: int = 0


_decode = msgspec.json.Decoder(_Event).decode


def decode(line: bytes) -> tuple[str, Item]:
    event = _decode(line)
    meta = event.object.metadata
    return event.type, Item((meta.namespace, meta.name), meta.uid, int(meta.resource_version), event.object.value)


def item(name: str, version: int, *, uid: str = "u", value: int = 0, namespace: str = "default") -> Item:
    return Item((namespace, name), uid, version, value)

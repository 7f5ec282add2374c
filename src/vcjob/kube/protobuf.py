"""The API server's binary form, as far as it is read here.

The kinds that are built in also travel as protobuf, and a server writes that much more cheaply than JSON. Declared are
only the fields that somebody reads; the parser passes over the others. Their numbers are the API's own (generated.proto
of k8s.io/api and k8s.io/apimachinery) and never change.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

__all__ = (
    "MACHINERY",
    "PROTOBUF",
    "PROTOBUF_WATCH",
    "DecodeError",
    "Object",
    "Status",
    "WatchEvent",
    "declare",
    "is_protobuf",
    "read_list",
    "unwrap",
)

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
PROTOBUF_WATCH: Final = f"{PROTOBUF};stream=watch"

Fields = Mapping[str, tuple[int, str]]
"""Names of a message's fields, each with its number and its type.

The type is a scalar's ("string", "int64", "int32", "bool", "bytes"), "map" (from string to string), or another declared
message's; with "[]" behind it, it is repeated.
"""

_MAGIC: Final = b"k8s\x00"  # before the envelope of every answer
_PACKAGE: Final = "vcjob"
_TYPE, _RAW = 1, 2  # numbers of the fields of the envelope that hold the kind and the object
_METADATA, _ITEMS = 1, 2  # of the fields of a list
_VARINT, _DELIMITED = 0, 2  # wire types
_FIXED: Final = {1: 8, 5: 4}  # those of fixed length, in bytes
_SCALARS: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}
_pool: Final = DescriptorPool()  # our own: other libraries may declare the same kinds


def declare(file: str, messages: Mapping[str, Fields], *, uses: tuple[str, ...] = ()) -> dict[str, type[Any]]:
    """Declare messages and return their classes; `uses` names files whose messages are referred to."""
    described = FileDescriptorProto(name=file, package=_PACKAGE, syntax="proto2", dependency=uses)
    for name, fields in messages.items():
        message = described.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    _pool.Add(described)
    return {name: GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in messages}


def _add_field(message: DescriptorProto, name: str, number: int, kind: str) -> None:
    repeated = kind.endswith("[]") or kind == "map"
    kind = kind.removesuffix("[]")
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = FieldDescriptorProto.TYPE_MESSAGE
    if kind != "map":
        field.type_name = f".{_PACKAGE}.{kind}"
        return
    # A map is a list of pairs; parsers make a dictionary of it by the name and the option of the pair's type.
    entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for part, part_number in (("key", 1), ("value", 2)):
        _add_field(entry, part, part_number, "string")
    field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"


MACHINERY: Final = "machinery.proto"
_classes = declare(
    MACHINERY,
    {
        "TypeMeta": {"api_version": (1, "string"), "kind": (2, "string")},
        "Unknown": {"type_meta": (1, "TypeMeta"), "raw": (2, "bytes")},
        "RawExtension": {"raw": (1, "bytes")},
        "WatchEvent": {"type": (1, "string"), "object": (2, "RawExtension")},
        "ListMeta": {"resource_version": (2, "string")},
        "Cause": {"reason": (1, "string")},
        "Details": {"causes": (4, "Cause[]"), "retry_after_seconds": (5, "int32")},
        "Status": {
            "message": (3, "string"),
            "reason": (4, "string"),
            "details": (5, "Details"),
            "code": (6, "int32"),
        },
        "Time": {"seconds": (1, "int64")},
        "OwnerReference": {
            "kind": (1, "string"),
            "name": (3, "string"),
            "uid": (4, "string"),
            "api_version": (5, "string"),
            "controller": (6, "bool"),
        },
        "ObjectMeta": {
            "name": (1, "string"),
            "namespace": (3, "string"),
            "uid": (5, "string"),
            "resource_version": (6, "string"),
            "creation_timestamp": (8, "Time"),
            "deletion_timestamp": (9, "Time"),
            "deletion_grace_period_seconds": (10, "int64"),
            "labels": (11, "map"),
            "annotations": (12, "map"),
            "owner_references": (13, "OwnerReference[]"),
        },
        "Object": {"metadata": (1, "ObjectMeta")},
    },
)
_Unknown, _TypeMeta, _ListMeta = _classes["Unknown"], _classes["TypeMeta"], _classes["ListMeta"]
Object: Final = _classes["Object"]
Status: Final = _classes["Status"]
WatchEvent: Final = _classes["WatchEvent"]


def is_protobuf(body: bytes) -> bool:
    """Return whether an answer is in this form."""
    return body.startswith(_MAGIC)


def unwrap(body: bytes) -> tuple[str, bytes]:
    """Return the kind of an answer's object, and its message. Raises DecodeError."""
    envelope = _Unknown.FromString(_open(body))
    return envelope.type_meta.kind, envelope.raw


def _open(body: bytes) -> memoryview:
    """Return the envelope of an answer, which may be large and is not copied. Raises DecodeError."""
    if not is_protobuf(body):
        raise DecodeError(f"no protobuf: {body[:100]!r}")
    return memoryview(body)[len(_MAGIC) :]


def read_list(body: bytes) -> tuple[str, int, Iterator[bytes]]:
    """Return kind and version of a list and the messages of its items. Raises DecodeError or ValueError.

    A list may be larger than all that becomes of it, so the items are cut out of it one by one.
    """
    envelope = dict(_walk(_open(body)))
    listing = envelope.get(_RAW, memoryview(b""))
    meta = b""
    for number, part in _walk(listing):  # to its end: a list that is cut off is none
        if number == _METADATA:
            meta = bytes(part)
    items = (bytes(part) for number, part in _walk(listing) if number == _ITEMS)
    kind = _TypeMeta.FromString(bytes(envelope.get(_TYPE, b""))).kind
    return kind, int(_ListMeta.FromString(meta).resource_version), items


def _walk(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of the messages, strings and bytes that a message holds. Raises DecodeError."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            _, at = _varint(message, at)
            continue
        if wire_type == _DELIMITED:
            length, at = _varint(message, at)
        elif (length := _FIXED.get(wire_type, 0)) == 0:
            raise DecodeError(f"no field of protobuf at byte {at}")
        if at + length > end:
            raise DecodeError(f"cut off at byte {at}")
        if wire_type == _DELIMITED:
            yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends. Raises DecodeError."""
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            break
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number, at
    raise DecodeError(f"no number at byte {at}")

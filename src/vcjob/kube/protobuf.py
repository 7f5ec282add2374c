"""The API server's binary form, as far as it is read here.

The kinds that are built in also travel as protobuf, and a server writes that much more cheaply than JSON. Declared are
only the fields that somebody reads; the parser passes over the others. Their numbers are the API's own (generated.proto
of k8s.io/api and k8s.io/apimachinery) and never change.
"""

from collections.abc import Mapping
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
        "List": {"metadata": (1, "ListMeta"), "items": (2, "bytes[]")},  # each of them is a message, left as it is
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
_Unknown, _List = _classes["Unknown"], _classes["List"]
Object: Final = _classes["Object"]
Status: Final = _classes["Status"]
WatchEvent: Final = _classes["WatchEvent"]


def is_protobuf(body: bytes) -> bool:
    """Return whether an answer is in this form."""
    return body.startswith(_MAGIC)


def unwrap(body: bytes) -> tuple[str, bytes]:
    """Return the kind of an answer's object, and its message. Raises DecodeError."""
    if not body.startswith(_MAGIC):
        raise DecodeError(f"no protobuf: {body[:100]!r}")
    envelope = _Unknown.FromString(body[len(_MAGIC) :])
    return envelope.type_meta.kind, envelope.raw


def read_list(body: bytes) -> tuple[int, list[bytes]]:
    """Return the version of a list and the messages of its items. Raises DecodeError or ValueError."""
    listing = _List.FromString(unwrap(body)[1])
    return int(listing.metadata.resource_version), list(listing.items)

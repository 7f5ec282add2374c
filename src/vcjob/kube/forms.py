"""How lists and watches of a kind are written: as JSON, which every kind knows, or as protobuf, if it is built in.

Owns nothing; pure. An informer asks for its kind in one form and has what comes read by it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from vcjob.kube.answers import is_version
from vcjob.kube.pieces import Split, split_frames, split_lines
from vcjob.kube.protobuf import (
    PROTOBUF,
    PROTOBUF_WATCH,
    DecodeError,
    Object,
    Status,
    WatchEvent,
    read_list,
    unwrap,
)

__all__ = ("Bookmark", "Failure", "Form", "Identity", "JsonForm", "ProtobufForm", "Unreadable", "read_line")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All up to this version has been told."""

    version: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The watch has failed on the server's side."""

    code: int  # as of HTTP
    status: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which object something is about, and which version of it."""

    event: str  # "ADDED", "MODIFIED", "DELETED", or one of those that are about no object
    key: tuple[str, str]
    uid: str
    version: str
    kind: str = ""  # if it is told


class Unreadable(Exception):
    """What came is not what the API speaks of; says nothing of a single object."""


class Form(Protocol[T_co]):
    """A form and what an object becomes in it."""

    accept: str | None
    accept_watch: str | None
    split: Split

    def read_list(self, body: bytes) -> tuple[str, int, Iterable[bytes]]:
        """Return kind and version of a list, and its items, which are cut out of it one by one. Raises Unreadable."""
        ...

    def read_item(self, item: bytes) -> T_co:
        """Return the object of a list's item. Raises anything when it cannot be read."""
        ...

    def read_event(self, piece: bytes) -> tuple[str, T_co] | Bookmark | Failure:
        """Return what a watch says: ADDED, MODIFIED or DELETED and an object, or something of the watch itself.

        Raises Unreadable, and anything else when it is the object that cannot be read.
        """
        ...

    def identify_item(self, item: bytes) -> Identity:
        """Return which object an item of a list is, if no more of it can be read. Raises anything."""
        ...

    def identify_event(self, piece: bytes) -> Identity:
        """Return which object an event is about, if no more of it can be read. Raises anything."""
        ...


class _ListMeta(msgspec.Struct, gc=False):
    version: str = msgspec.field(name="resourceVersion", default="0")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw]
    kind: str = ""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="0")


class _Object(msgspec.Struct):
    metadata: _Meta
    kind: str = ""


class _Event(msgspec.Struct):
    type: str
    object: _Object


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _ListMeta


class _ErrorStatus(msgspec.Struct, gc=False):
    code: int = 0


_decode_list = msgspec.json.Decoder(_List).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_error = msgspec.json.Decoder(_ErrorStatus).decode

_CHANGES: Final = ("ADDED", "MODIFIED", "DELETED")
_CONTROL: Final = (b'{"type":"BOOKMARK"', b'{"type":"ERROR"')
_CONTROL_TYPES: Final = (b'"BOOKMARK"', b'"ERROR"')


class JsonForm(Generic[T]):
    """JSON, a line for each event."""

    accept: str | None = None
    accept_watch: str | None = None

    def __init__(self, decode_event: Callable[[bytes], tuple[str, T]]) -> None:
        """`decode_event` makes type and object of the line of an ADDED, MODIFIED or DELETED event."""
        self.split: Split = split_lines
        self._decode = decode_event

    def read_list(self, body: bytes) -> tuple[str, int, Iterable[bytes]]:
        try:
            listing = _decode_list(body)
            # As events, so that the caller writes one decoder only; the copy is cheap next to the decoding.
            items = (b'{"type":"ADDED","object":%b}' % raw for raw in listing.items)
            return listing.kind, int(listing.metadata.version), items
        except (msgspec.MsgspecError, ValueError) as error:
            raise Unreadable(str(error)) from error

    def read_item(self, item: bytes) -> T:
        return self._decode(item)[1]

    def read_event(self, piece: bytes) -> tuple[str, T] | Bookmark | Failure:
        if piece.startswith(_CONTROL):
            return _read_control(piece)
        try:
            return self._decode(piece)
        except Exception:
            if any(word in piece[:40] for word in _CONTROL_TYPES):
                return _read_control(piece)
            raise

    def identify_item(self, item: bytes) -> Identity:
        return _identify(item)

    def identify_event(self, piece: bytes) -> Identity:
        return _identify(piece)


def read_line(line: bytes) -> Identity | Bookmark | Failure:
    """Return what a line of a watch in JSON says, and of an object only which it is. Raises Unreadable."""
    try:
        told = _identify(line)
    except ValueError:  # msgspec's own errors are ValueErrors
        return _read_control(line)
    if told.event not in _CHANGES:
        return _read_control(line)
    if not (told.key[1] and told.uid and is_version(told.version)):
        raise Unreadable("an object without name, uid or version")
    return told


def _identify(line: bytes) -> Identity:
    event = _decode_event(line)
    return _identity(event.type, event.object.metadata, kind=event.object.kind)


def _identity(event: str, meta: Any, *, kind: str = "") -> Identity:
    key = (meta.namespace, meta.name)
    return Identity(event=event, key=key, uid=meta.uid, version=meta.resource_version, kind=kind)


def _read_control(line: bytes) -> Bookmark | Failure:
    try:
        envelope = _decode_envelope(line)
        if envelope.type == "BOOKMARK":
            return Bookmark(int(_decode_bookmark(envelope.object).metadata.version))
        return Failure(_decode_error(envelope.object).code, bytes(envelope.object))
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(str(error)) from error


class ProtobufForm(Generic[T]):
    """Protobuf, a frame for each event."""

    accept: str | None = PROTOBUF
    accept_watch: str | None = PROTOBUF_WATCH

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        """`decode` makes an object of its message."""
        self.split: Split = split_frames
        self._decode = decode

    def read_list(self, body: bytes) -> tuple[str, int, Iterable[bytes]]:
        try:
            return read_list(body)
        except (DecodeError, ValueError) as error:
            raise Unreadable(str(error)) from error

    def read_item(self, item: bytes) -> T:
        return self._decode(item)

    def read_event(self, piece: bytes) -> tuple[str, T] | Bookmark | Failure:
        try:
            event = WatchEvent.FromString(piece)
            kind, wrapped = event.type, event.object.raw
            message = unwrap(wrapped)[1]
            if kind == "BOOKMARK":
                return Bookmark(int(Object.FromString(message).metadata.resource_version))
            if kind == "ERROR":
                return Failure(Status.FromString(message).code, wrapped)
        except (DecodeError, ValueError) as error:
            raise Unreadable(str(error)) from error
        return kind, self._decode(message)

    def identify_item(self, item: bytes) -> Identity:
        return _identity("ADDED", Object.FromString(item).metadata)

    def identify_event(self, piece: bytes) -> Identity:
        event = WatchEvent.FromString(piece)
        return _identity(event.type, Object.FromString(unwrap(event.object.raw)[1]).metadata)

"""Reading answers of 2xx: what is not what was asked for is a failure of the way to the server, not of the caller.

Pure. A proxy may answer with a page of its own, with nothing, with half of it, or with what another has asked for.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from vcjob.kube.errors import ServerError
from vcjob.kube.protobuf import DecodeError

__all__ = (
    "can_be_list_of",
    "can_be_of",
    "check_deletion",
    "check_listing",
    "is_version",
    "read_answer",
    "read_listing",
    "read_object",
    "read_typed",
)

T = TypeVar("T")

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def read_answer(decode: Callable[[bytes], T], answer: bytes, *, path: str) -> T:
    """Return what `decode` makes of an answer. Raises ServerError when that is none; `path` is for the message."""
    try:
        return decode(answer)
    except (DecodeError, ValueError) as error:  # msgspec's own errors are ValueErrors
        raise ServerError(f"the answer about {path} cannot be read: {error}", path=path) from error


def read_typed(answer: bytes, type_: type[T], *, path: str) -> T:
    """Return a JSON answer as a `type_`. Raises ServerError when it is none."""
    return read_answer(msgspec.json.Decoder(type_).decode, answer, path=path)


def read_object(answer: bytes, *, path: str, uid: str | None = None) -> dict[str, Any]:
    """Return the API object at `path`, with that UID if it is given. Raises ServerError when the answer is another."""
    found = read_answer(_decode_object, answer, path=path)
    if not _is_object(found):
        raise ServerError(f"the answer about {path} is no object", path=path)
    namespace, name = _address(path)
    asked = {"name": name, "namespace": namespace, "uid": uid}
    if any(value is not None and found["metadata"].get(field) != value for field, value in asked.items()):
        raise ServerError(f"the answer about {path} is about another object", path=path)
    return found


def check_deletion(answer: bytes, *, path: str, uid: str | None) -> None:
    """Raise ServerError unless an answer in JSON is about the deletion of the object at `path`, with that UID if given.

    The API server answers with what is left of the object, or with a Status whose details name what has gone.
    """
    found = read_answer(_decode_object, answer, path=path)
    if found.get("kind") == "Status":
        about = found.get("details") if found.get("status") == "Success" else None
    else:
        about = found.get("metadata")
    if (
        not isinstance(about, dict)
        or about.get("name") != _address(path)[1]
        or (uid is not None and about.get("uid", uid) != uid)
    ):
        raise ServerError(f"the answer about the deletion of {path} is about something else", path=path)


def read_listing(answer: bytes, *, path: str) -> dict[str, Any]:
    """Return an API list with its metadata. Raises ServerError when it is none of the collection at `path`."""
    found = read_answer(_decode_object, answer, path=path)
    check_listing(found, path=path)
    return found


def check_listing(found: Any, *, path: str) -> None:
    """Raise ServerError unless what was decoded is a list of the collection at `path`."""
    meta, items = (found.get("metadata"), found.get("items")) if isinstance(found, dict) else (None, None)
    if not isinstance(meta, dict) or not is_version(meta.get("resourceVersion")) or not isinstance(items, list):
        raise ServerError(f"the answer about {path} is no list", path=path)
    if not all(map(_is_object, items)):
        raise ServerError(f"the answer about {path} lists what is no object", path=path)
    if not can_be_list_of(path, str(found.get("kind") or "")):
        raise ServerError(f"the answer about {path} is a {found['kind']}", path=path)


def can_be_of(path: str, kind: str) -> bool:
    """Return whether a kind, if it is told, can be that of a collection: its plural begins with it (a convention)."""
    return path.rpartition("/")[2].startswith(kind.lower())


def can_be_list_of(path: str, kind: str) -> bool:
    """Return whether a kind, if it is told, can be that of a list of the collection."""
    return not kind or (kind.endswith("List") and can_be_of(path, kind.removesuffix("List")))


def is_version(value: object) -> bool:
    """Return whether something is a resourceVersion that can be compared: a number, as text."""
    return isinstance(value, str) and value.isascii() and value.isdecimal()


def _is_object(found: Any) -> bool:
    meta = found.get("metadata") if isinstance(found, dict) else None
    if not isinstance(meta, dict) or not meta.get("name") or not meta.get("uid"):
        return False
    return is_version(meta.get("resourceVersion"))


def _address(path: str) -> tuple[str | None, str]:
    """Return namespace, None without one, and name of the object at `path`."""
    *_, root, namespace, _, name = path.split("/")
    return namespace if root == "namespaces" else None, name

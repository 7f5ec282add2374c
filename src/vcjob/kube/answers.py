"""Reading answers of 2xx: what is not what was asked for is a failure of the way to the server, not of the caller.

Pure. A proxy may answer with a page of its own, with nothing, or with half of it.
"""

from typing import Any, TypeVar

import msgspec

from vcjob.kube.errors import ServerError

__all__ = ("read_json", "read_listing", "read_object", "read_typed")

T = TypeVar("T")


def read_typed(answer: bytes, type_: type[T], *, path: str) -> T:
    """Return the answer as a `type_`. Raises ServerError when it is none; `path` is for the message."""
    try:
        return msgspec.json.decode(answer, type=type_)
    except msgspec.DecodeError as error:
        raise ServerError(f"the answer about {path} cannot be read: {error}", path=path) from error


def read_json(answer: bytes, *, path: str) -> dict[str, Any]:
    """Return a JSON object. Raises ServerError when it is none."""
    return read_typed(answer, dict[str, Any], path=path)


def read_object(answer: bytes, *, path: str) -> dict[str, Any]:
    """Return an API object with its metadata. Raises ServerError when it is none."""
    found = read_json(answer, path=path)
    meta = found.get("metadata")
    if not isinstance(meta, dict) or not all(meta.get(field) for field in ("name", "uid", "resourceVersion")):
        raise ServerError(f"the answer about {path} is no object", path=path)
    return found


def read_listing(answer: bytes, *, path: str) -> dict[str, Any]:
    """Return an API list with its metadata. Raises ServerError when it is none."""
    found = read_json(answer, path=path)
    meta, items = found.get("metadata"), found.get("items")
    if not isinstance(meta, dict) or not meta.get("resourceVersion") or not isinstance(items, list):
        raise ServerError(f"the answer about {path} is no list", path=path)
    return found

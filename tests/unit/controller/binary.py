"""Pods as an API server sends them in protobuf, from the JSON in which tests write them."""

from datetime import datetime
from typing import Any, Final

from google.protobuf.json_format import ParseDict

from vcjob.controller.decode_pods import POD_MESSAGES
from vcjob.kube import protobuf

__all__ = ("pod_answer", "pod_list", "pod_message", "status_answer", "watch_frame", "wrap")

# Whole, as the operator itself cuts lists up.
_LIST: Final = protobuf.declare(
    "list.proto", {"List": {"metadata": (1, "ListMeta"), "items": (2, "bytes[]")}}, uses=(protobuf.MACHINERY,)
)["List"]
_TIMES: Final = ("Timestamp", "Time", "finishedAt")


def pod_message(raw: dict[str, Any]) -> bytes:
    """Return the message of a Pod."""
    return bytes(ParseDict(_with_seconds(raw), POD_MESSAGES["Pod"](), ignore_unknown_fields=True).SerializeToString())


def pod_answer(raw: dict[str, Any]) -> bytes:
    """Return the answer to a request about one Pod."""
    return wrap("Pod", pod_message(raw))


def pod_list(messages: list[bytes], *, version: int) -> bytes:
    """Return the answer to a list of Pods."""
    listing = _LIST(metadata={"resource_version": str(version)}, items=messages)
    return wrap("PodList", listing.SerializeToString())


def status_answer(**fields: Any) -> bytes:
    """Return an answer that is a Status."""
    return wrap("Status", ParseDict(fields, protobuf.Status()).SerializeToString())


def watch_frame(kind: str, wrapped: bytes) -> bytes:
    """Return an event of a watch, without its length."""
    return bytes(protobuf.WatchEvent(type=kind, object={"raw": wrapped}).SerializeToString())


def wrap(kind: str, message: bytes) -> bytes:
    """Put a message into the envelope of every answer."""
    envelope = protobuf._Unknown(type_meta={"api_version": "v1", "kind": kind}, raw=message)
    return b"k8s\x00" + bytes(envelope.SerializeToString())


def _with_seconds(value: Any, name: str = "") -> Any:
    """Return the value with its times as protobuf has them."""
    if isinstance(value, dict):
        return {key: _with_seconds(part, key) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_with_seconds(part) for part in value]
    if isinstance(value, str) and name.endswith(_TIMES):
        return {"seconds": int(datetime.fromisoformat(value).timestamp())}
    return value

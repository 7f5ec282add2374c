"""From JSON to the slim values that the lifecycle works on, for the kinds that have a CRD. Pure.

Only the fields that decide anything are decoded; the rest is skipped in the parser and never becomes a Python object.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from vcjob.api.names import ANNOTATION_JOB_VERSION, JOB_KIND
from vcjob.gang.base import Group
from vcjob.kube.protobuf import is_protobuf, unwrap

__all__ = (
    "decode_group",
    "decode_group_event",
    "decode_uid",
    "is_going",
    "is_gone",
    "read_number",
)


class _Owner(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = "0"
    deletion_timestamp: datetime | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Identity(msgspec.Struct):
    metadata: _Meta


class _GroupCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _GroupStatus(msgspec.Struct):
    phase: str = ""
    conditions: list[_GroupCondition] | None = None


class _Group(msgspec.Struct):
    metadata: _Meta
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: _GroupStatus = msgspec.field(default_factory=_GroupStatus)


class _GroupEvent(msgspec.Struct):
    type: str
    object: _Group


_decode_identity = msgspec.json.Decoder(_Identity).decode
_decode_group = msgspec.json.Decoder(_Group).decode
_decode_group_event = msgspec.json.Decoder(_GroupEvent).decode


def decode_uid(body: bytes) -> str:
    """Return the UID of any object."""
    return _decode_identity(body).metadata.uid


def decode_group(body: bytes) -> Group:
    """Return the slim group of an API answer."""
    return _slim_group(_decode_group(body))


def decode_group_event(line: bytes) -> tuple[str, Group]:
    """Return the type and slim group of a watch event."""
    event = _decode_group_event(line)
    return event.type, _slim_group(event.object)


def _slim_group(raw: _Group) -> Group:
    meta, status = raw.metadata, raw.status
    owner = next((o for o in meta.owner_references or () if o.controller and o.kind == JOB_KIND), None)
    told = [c for c in status.conditions or () if c.status == "True"]
    latest = max(told, key=lambda c: _seconds(c.last_transition_time) or 0.0) if told else None
    return Group(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=read_number(meta.resource_version, 0),
        owner_uid=owner.uid if owner else "",
        owner_name=owner.name if owner else "",
        phase=status.phase,
        job_version=_number_or_none((meta.annotations or {}).get(ANNOTATION_JOB_VERSION, "")),
        deleted=meta.deletion_timestamp is not None,
        unschedulable=latest is not None and latest.type == "Unschedulable",
        condition=latest.type if latest and latest.type != "Scheduled" else "",
        message=latest.message if latest else "",
        since=_seconds(latest.last_transition_time) if latest else None,
        spec=raw.spec,
    )


def _seconds(time: datetime | None) -> float | None:
    if time is None:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def read_number(text: str, default: int) -> int:
    """Return the number that an annotation or version says, `default` when it says none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else default


def _number_or_none(text: str) -> int | None:
    number = read_number(text, -1)
    return number if number >= 0 else None


def is_gone(answer: bytes) -> bool:
    """Return whether the answer to a deletion says that nothing is left: a Status instead of the object."""
    if is_protobuf(answer):
        return unwrap(answer)[0] == "Status"
    return b'"kind":"Status"' in answer[:64] and b'"status":"Success"' in answer


def is_going(answer: bytes) -> bool:
    """Return whether the answer to a deletion, in JSON, has the object with the time of its deletion."""
    return _decode_identity(answer).metadata.deletion_timestamp is not None

"""From watch events to the slim values that the lifecycle works on.

Pure. Only the fields that decide anything are decoded; the rest of a Pod is skipped in the parser and never becomes a
Python object.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from vcjob.api.names import (
    ANNOTATION_EVICTED_AT,
    ANNOTATION_JOB_RETRY_COUNT,
    ANNOTATION_JOB_VERSION,
    ANNOTATION_OUT_OF_SYNC,
    BATCH_API_VERSION,
    JOB_KIND,
    LABEL_JOB_NAME,
    LABEL_PARTITION_ID,
    LABEL_TASK_INDEX,
    LABEL_TASK_SPEC,
)
from vcjob.gang.base import Group
from vcjob.lifecycle.pod import FAILED, PENDING, RUNNING, SUCCEEDED, Exit, Pod

__all__ = (
    "decode_group",
    "decode_group_event",
    "decode_identity_event",
    "decode_list_version",
    "decode_pod",
    "decode_pod_event",
    "decode_pods",
    "decode_uid",
    "is_gone",
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
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    finished_at: datetime | None = None


class _Waiting(msgspec.Struct):
    reason: str = ""


class _State(msgspec.Struct):
    terminated: _Terminated | None = None
    waiting: _Waiting | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _InitContainer(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_policy: str = ""


class _PodSpec(msgspec.Struct, rename="camel"):
    init_containers: list[_InitContainer] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = "0"


class _PodList(msgspec.Struct):
    items: list[_Pod]
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Identity(msgspec.Struct):
    metadata: _Meta


class _IdentityEvent(msgspec.Struct):
    type: str
    object: _Identity


class _PodEvent(msgspec.Struct):
    type: str
    object: _Pod


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


_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_pods = msgspec.json.Decoder(_PodList).decode
_decode_pod_event = msgspec.json.Decoder(_PodEvent).decode
_decode_identity = msgspec.json.Decoder(_Identity).decode
_decode_identity_event = msgspec.json.Decoder(_IdentityEvent).decode
_decode_group = msgspec.json.Decoder(_Group).decode
_decode_group_event = msgspec.json.Decoder(_GroupEvent).decode

_words: dict[str, str] = {}  # a task's or Job's name is one string for all its Pods


def decode_pod(body: bytes) -> Pod:
    """Return the slim Pod of an API answer. Raises msgspec.MsgspecError when the answer is none."""
    return _slim_pod(_decode_pod(body))


def decode_pods(body: bytes) -> list[Pod]:
    """Return the slim Pods of a list."""
    return [_slim_pod(raw) for raw in _decode_pods(body).items]


def decode_list_version(body: bytes) -> int:
    """Return the resourceVersion of a list of Pods."""
    return _number(_decode_pods(body).metadata.resource_version, 0)


def decode_uid(body: bytes) -> str:
    """Return the UID of any object."""
    return _decode_identity(body).metadata.uid


def decode_pod_event(line: bytes) -> tuple[str, Pod]:
    """Return the type and slim Pod of a watch event."""
    event = _decode_pod_event(line)
    return event.type, _slim_pod(event.object)


def decode_identity_event(line: bytes) -> tuple[str, tuple[str, str], str, int]:
    """Return the type of a watch event, and namespace and name, UID and version of its object, whatever that is."""
    event = _decode_identity_event(line)
    meta = event.object.metadata
    return event.type, (meta.namespace, meta.name), meta.uid, _number(meta.resource_version, 0)


def decode_group(body: bytes) -> Group:
    """Return the slim group of an API answer."""
    return _slim_group(_decode_group(body))


def decode_group_event(line: bytes) -> tuple[str, Group]:
    """Return the type and slim group of a watch event."""
    event = _decode_group_event(line)
    return event.type, _slim_group(event.object)


def _slim_pod(raw: _Pod) -> Pod:
    meta, status = raw.metadata, raw.status
    labels, annotations = meta.labels or {}, meta.annotations or {}
    containers = status.container_statuses or ()
    inits = status.init_container_statuses or ()
    phase = status.phase or PENDING
    evicted = annotations.get(ANNOTATION_EVICTED_AT)
    return Pod(
        namespace=_word(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        version=_number(meta.resource_version, 0),
        job=_word(labels.get(LABEL_JOB_NAME, "")),
        owner_uid=_word(_controlling_job(meta.owner_references)),
        task=_word(annotations.get(LABEL_TASK_SPEC) or labels.get(LABEL_TASK_SPEC, "")),
        index=_number(annotations.get(LABEL_TASK_INDEX) or labels.get(LABEL_TASK_INDEX, ""), -1),
        partition=_word(labels.get(LABEL_PARTITION_ID, "")),
        job_version=_number(annotations.get(ANNOTATION_JOB_VERSION, ""), 0),
        retry=_number(annotations.get(ANNOTATION_JOB_RETRY_COUNT, ""), 0),
        phase=_word(phase),
        created=_seconds(meta.creation_timestamp) or 0.0,
        deleted=_deleted(meta),
        ours=annotations.get(ANNOTATION_OUT_OF_SYNC) == "true",
        ready=phase == RUNNING and bool(containers) and all(c.ready for c in containers),
        restarts=sum(c.restart_count for c in containers) + sum(c.restart_count for c in inits),
        exits=_exits(raw) if phase == FAILED else (),
        reason=_word(status.reason or _disruption(status)),
        detail=_detail(status) if phase == PENDING else "",
        since=_since(status, phase) if phase in (FAILED, SUCCEEDED) else None,
        evicted_at=float(evicted) if evicted and evicted.replace(".", "", 1).isdigit() else None,
    )


def _controlling_job(owners: list[_Owner] | None) -> str:
    for owner in owners or ():
        if owner.controller and owner.kind == JOB_KIND and owner.api_version == BATCH_API_VERSION:
            return owner.uid
    return ""


def _exits(raw: _Pod) -> tuple[Exit, ...]:
    """Return the ended app containers, then the ended init containers; sidecars are neither."""
    sidecars = {c.name for c in raw.spec.init_containers or () if c.restart_policy == "Always"}
    out = [
        Exit(container=c.name, code=c.state.terminated.exit_code, reason=c.state.terminated.reason, init=init)
        for statuses, init in ((raw.status.container_statuses, False), (raw.status.init_container_statuses, True))
        for c in statuses or ()
        if c.state and c.state.terminated and c.name not in sidecars
    ]
    return tuple(out)


def _disruption(status: _PodStatus) -> str:
    """Return who took the Pod away (`EvictionByEvictionAPI`, `PreemptionByScheduler`); empty when nobody says so."""
    told = (c.reason for c in status.conditions or () if c.type == "DisruptionTarget" and c.status == "True")
    return next(told, "")


def _detail(status: _PodStatus) -> str:
    """Return why a pending Pod does not start, in a few words; empty when nothing is wrong."""
    for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
        waiting = container.state.waiting if container.state else None
        if waiting and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return f"container {container.name}: {waiting.reason}"
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason != "SchedulingGated":
            return f"{condition.reason}: {condition.message}"[:300]
    return ""


def _since(status: _PodStatus, phase: str) -> float | None:
    ends = [
        c.state.terminated.finished_at
        for c in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if c.state and c.state.terminated and c.state.terminated.finished_at
    ]
    if ends:
        return _seconds(max(ends))
    ready = next((c for c in status.conditions or () if c.type == "Ready"), None)
    return _seconds(ready.last_transition_time) if ready else None


def _slim_group(raw: _Group) -> Group:
    meta, status = raw.metadata, raw.status
    owner = next((o for o in meta.owner_references or () if o.controller and o.kind == JOB_KIND), None)
    told = [c for c in status.conditions or () if c.status == "True"]
    latest = max(told, key=lambda c: _seconds(c.last_transition_time) or 0.0) if told else None
    return Group(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=_number(meta.resource_version, 0),
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


def _deleted(meta: _Meta) -> float | None:
    """Return when the deletion was asked for: the timestamp is the end of the grace period."""
    end = _seconds(meta.deletion_timestamp)
    return None if end is None else end - (meta.deletion_grace_period_seconds or 0)


def _seconds(time: datetime | None) -> float | None:
    if time is None:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else default


def _number_or_none(text: str) -> int | None:
    number = _number(text, -1)
    return number if number >= 0 else None


def _word(text: str) -> str:
    known = _words.get(text)
    if known is None:
        if len(_words) > 50_000:  # names of Jobs long gone
            _words.clear()
        _words[text] = known = text
    return known


def is_gone(answer: bytes) -> bool:
    """Return whether the answer to a deletion says that nothing is left: a Status instead of the object."""
    return not answer or b'"kind":"Status"' in answer[:64]

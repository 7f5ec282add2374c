"""From the API server's binary form to the slim Pods that the lifecycle works on. Pure.

Only the fields that decide anything are declared; the rest of a Pod is skipped in the parser and never becomes a Python
object.
"""

from collections.abc import Iterable
from typing import Any, Final

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
from vcjob.kube.protobuf import MACHINERY, DecodeError, declare, read_list, unwrap
from vcjob.lifecycle.pod import FAILED, PENDING, RUNNING, SUCCEEDED, Exit, Pod

from .decode import read_number

__all__ = ("POD_MESSAGES", "decode_pod", "decode_pod_message", "decode_pods")


POD_MESSAGES: Final = declare(
    "pod.proto",
    {
        "Waiting": {"reason": (1, "string")},
        "Terminated": {"exit_code": (1, "int32"), "reason": (3, "string"), "finished_at": (6, "Time")},
        "ContainerState": {"waiting": (1, "Waiting"), "terminated": (3, "Terminated")},
        "ContainerStatus": {
            "name": (1, "string"),
            "state": (2, "ContainerState"),
            "ready": (4, "bool"),
            "restart_count": (5, "int32"),
        },
        "Condition": {
            "type": (1, "string"),
            "status": (2, "string"),
            "last_transition_time": (4, "Time"),
            "reason": (5, "string"),
            "message": (6, "string"),
        },
        "PodStatus": {
            "phase": (1, "string"),
            "conditions": (2, "Condition[]"),
            "reason": (4, "string"),
            "container_statuses": (8, "ContainerStatus[]"),
            "init_container_statuses": (10, "ContainerStatus[]"),
        },
        "Container": {"name": (1, "string"), "restart_policy": (24, "string")},
        "PodSpec": {"init_containers": (20, "Container[]")},
        "Pod": {"metadata": (1, "ObjectMeta"), "spec": (2, "PodSpec"), "status": (3, "PodStatus")},
    },
    uses=(MACHINERY,),
)
_POD_GC: Final = "DeletionByPodGC"  # set on Pods that had not ended only
_Pod = POD_MESSAGES["Pod"]
_words: dict[str, str] = {}  # a task's or Job's name is one string for all its Pods


def decode_pod(body: bytes) -> Pod:
    """Return the slim Pod of an API answer. Raises DecodeError when the answer is none."""
    kind, message = unwrap(body)
    if kind != "Pod":
        raise DecodeError(f"no Pod but a {kind}")
    return decode_pod_message(message)


def decode_pods(body: bytes) -> tuple[int, list[Pod]]:
    """Return the version and the slim Pods of a list. Raises DecodeError or ValueError."""
    kind, version, messages = read_list(body)
    if kind != "PodList":
        raise DecodeError(f"no list of Pods, but a {kind}")
    return version, [decode_pod_message(message) for message in messages]


def decode_pod_message(message: bytes) -> Pod:
    """Return the slim Pod of a protobuf message. Raises DecodeError."""
    return _slim_pod(_Pod.FromString(message))


def _slim_pod(raw: Any) -> Pod:
    meta, status = raw.metadata, raw.status
    labels, annotations = meta.labels, meta.annotations
    containers, inits = status.container_statuses, status.init_container_statuses
    phase = status.phase or PENDING
    disruption = next((c for c in status.conditions if c.type == "DisruptionTarget" and c.status == "True"), None)
    orphaned = phase == FAILED and disruption is not None and disruption.reason == _POD_GC
    evicted = read_number(annotations.get(ANNOTATION_EVICTED_AT, ""), -1)
    return Pod(
        namespace=_word(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        version=read_number(meta.resource_version, 0),
        job=_word(labels.get(LABEL_JOB_NAME, "")),
        owner_uid=_word(_controlling_job(meta.owner_references)),
        task=_word(annotations.get(LABEL_TASK_SPEC) or labels.get(LABEL_TASK_SPEC, "")),
        index=read_number(annotations.get(LABEL_TASK_INDEX) or labels.get(LABEL_TASK_INDEX, ""), -1),
        partition=_word(labels.get(LABEL_PARTITION_ID, "")),
        job_version=read_number(annotations.get(ANNOTATION_JOB_VERSION, ""), 0),
        retry=read_number(annotations.get(ANNOTATION_JOB_RETRY_COUNT, ""), 0),
        phase=_word(phase),
        created=float(meta.creation_timestamp.seconds),
        deleted=_deleted_pod(meta, disruption if orphaned else None),
        orphaned=orphaned,
        ours=annotations.get(ANNOTATION_OUT_OF_SYNC) == "true",
        ready=phase == RUNNING and bool(containers) and all(c.ready for c in containers),
        restarts=sum(c.restart_count for c in containers) + sum(c.restart_count for c in inits),
        exits=_exits(raw) if phase == FAILED else (),
        # "EvictionByEvictionAPI", "PreemptionByScheduler": who took it away
        reason=_word(status.reason or (disruption.reason if disruption is not None else "")),
        detail=_detail(status) if phase == PENDING else "",
        since=_since(status) if phase in (FAILED, SUCCEEDED) else None,
        evicted_at=float(evicted) if evicted >= 0 else None,
    )


def _controlling_job(owners: Iterable[Any]) -> str:
    for owner in owners:
        if owner.controller and owner.kind == JOB_KIND and owner.api_version == BATCH_API_VERSION:
            return str(owner.uid)
    return ""


def _deleted_pod(meta: Any, announced: Any) -> float | None:
    """Return when the deletion was asked for, or else announced by a condition, if it was.

    The timestamp is the end of the grace period.
    """
    if meta.HasField("deletion_timestamp"):
        return float(meta.deletion_timestamp.seconds - meta.deletion_grace_period_seconds)
    return None if announced is None else float(announced.last_transition_time.seconds)


def _exits(raw: Any) -> tuple[Exit, ...]:
    """Return the ended app containers, then the ended init containers; sidecars are neither."""
    sidecars = {c.name for c in raw.spec.init_containers if c.restart_policy == "Always"}
    out = [
        Exit(container=c.name, code=c.state.terminated.exit_code, reason=c.state.terminated.reason, init=init)
        for statuses, init in ((raw.status.container_statuses, False), (raw.status.init_container_statuses, True))
        for c in statuses
        if c.state.HasField("terminated") and c.name not in sidecars
    ]
    return tuple(out)


def _detail(status: Any) -> str:
    """Return why a pending Pod does not start, in a few words; empty when nothing is wrong."""
    for container in (*status.init_container_statuses, *status.container_statuses):
        if container.state.waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return f"container {container.name}: {container.state.waiting.reason}"
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason != "SchedulingGated":
            return f"{condition.reason}: {condition.message}"[:300]
    return ""


def _since(status: Any) -> float | None:
    statuses = (*status.container_statuses, *status.init_container_statuses)
    # A time that is not there is an empty message.
    ended = max((c.state.terminated.finished_at.seconds for c in statuses), default=0)
    ready = next((c.last_transition_time.seconds for c in status.conditions if c.type == "Ready"), 0)
    return float(ended or ready) or None


def _word(text: str) -> str:
    known = _words.get(text)
    if known is None:
        if len(_words) > 20_000:  # names of Jobs long gone
            _words.clear()
        _words[text] = known = text
    return known

"""What of a Pod or group decides about a Job."""

from typing import Any

import msgspec
import pytest
from tests.unit.controller.binary import pod_answer, pod_list, pod_message, status_answer
from tests.unit.lifecycle.builders import NOW

from vcjob.controller.decode import decode_group
from vcjob.controller.decode_pods import decode_pod, decode_pods
from vcjob.kube.protobuf import DecodeError
from vcjob.lifecycle.pod import Exit, Pod
from vcjob.lifecycle.status import format_time

AT = format_time(NOW)
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "uid-1", "controller": True}


def raw(*, meta: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "j-w-3",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": AT,
            "labels": {"volcano.sh/job-name": "j"},
            "annotations": {"volcano.sh/task-spec": "w", "volcano.sh/task-index": "3", "volcano.sh/job-version": "2"},
            "ownerReferences": [OWNER],
            **(meta or {}),
        },
        "spec": {"containers": [{"name": "main"}], **(spec or {})},
        "status": status,
    }


def pod(**fields: Any) -> Pod:
    return decode_pod(pod_answer(raw(**fields)))


def ended(name: str, code: int, *, at: float = NOW) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": format_time(at)}}}


def test_the_identity_of_a_pod():
    found = pod(phase="Running")
    assert (found.key, found.uid, found.version, found.job) == (("ns", "j-w-3"), "u", 7, "j")
    assert (found.task, found.index, found.job_version, found.owner_uid) == ("w", 3, 2, "uid-1")
    assert (found.created, found.deleted, found.ours) == (NOW, None, False)


@pytest.mark.parametrize(
    "owner",
    [{**OWNER, "controller": False}, {**OWNER, "kind": "Other"}, {**OWNER, "apiVersion": "batch/v1"}],
)
def test_only_a_controlling_job_owns_it(owner):
    assert pod(meta={"ownerReferences": [owner]}).owner_uid == ""


def test_a_deletion_counts_from_when_it_was_asked_for():
    meta = {"deletionTimestamp": AT, "deletionGracePeriodSeconds": 30}
    assert pod(meta=meta).deleted == NOW - 30


def test_app_containers_come_before_init_containers_and_sidecars_not_at_all():
    found = pod(
        spec={"initContainers": [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]},
        phase="Failed",
        containerStatuses=[ended("a", 0), ended("b", 3)],
        initContainerStatuses=[ended("init", 0), ended("side", 137)],
    )
    assert found.exits == (
        Exit(container="a", code=0),
        Exit(container="b", code=3),
        Exit(container="init", code=0, init=True),
    )


def test_a_pod_ends_with_its_last_container():
    found = pod(phase="Failed", containerStatuses=[ended("a", 1, at=NOW - 9), ended("b", 1)])
    assert found.since == NOW


def test_a_pod_without_container_states_ends_with_its_readiness():
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": AT}
    assert pod(phase="Failed", reason="Evicted", conditions=[ready]).since == NOW


def test_restarts_of_all_containers_count_together():
    statuses = [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 1}]
    assert (
        pod(
            phase="Running", containerStatuses=statuses, initContainerStatuses=[{"name": "i", "restartCount": 4}]
        ).restarts
        == 7
    )


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (
            {"containerStatuses": [{"name": "m", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "container m: ErrImagePull",
        ),
        ({"containerStatuses": [{"name": "m", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}]},
            "Unschedulable: 0/1",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}, ""),
    ],
)
def test_why_a_pending_pod_does_not_start(status, detail):
    assert pod(phase="Pending", **status).detail == detail


@pytest.mark.parametrize("value", ["", "x", "-1", "1" * 30])
def test_an_index_that_is_none_makes_a_pod_nobodys(value):
    assert pod(meta={"annotations": {"volcano.sh/task-index": value}}).index == -1


@pytest.mark.parametrize(
    ("value", "time"),
    [("1800000000", 1.8e9), ("", None), ("x", None), ("-1", None), ("²", None), ("٣", None), ("1e400", None)],
)
def test_an_eviction_that_cannot_be_read_is_none(value: str, time: float | None):
    assert pod(meta={"annotations": {"vcjob/evicted-at": value}}).evicted_at == time


@pytest.mark.parametrize("field", ["labels", "ownerReferences", "annotations"])
def test_a_pod_that_is_given_to_another_job_has_changed(field: str):
    given = {
        "labels": {"volcano.sh/job-name": "k"},
        "ownerReferences": [],
        "annotations": {"volcano.sh/job-version": "9"},
    }
    assert pod(phase="Running").signature != pod(phase="Running", meta={field: given.get(field, [])}).signature


def test_a_pod_without_labels_annotations_and_status_is_read():
    bare = {"metadata": {"name": "x", "uid": "u"}, "spec": {}}
    found = decode_pod(pod_answer(bare))
    assert (found.phase, found.task, found.owner_uid) == ("Pending", "", "")


def test_a_list_of_pods():
    version, found = decode_pods(
        pod_list([pod_message(raw(phase=phase)) for phase in ("Running", "Failed")], version=12)
    )
    assert version == 12
    assert [pod.phase for pod in found] == ["Running", "Failed"]


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b"k8s\x00\xff", status_answer(message="no")])
def test_what_is_no_pod_is_not_taken_for_one(body: bytes):
    with pytest.raises(DecodeError):
        decode_pod(body)


def group(conditions: list[dict[str, Any]], **annotations: str) -> Any:
    meta = {"name": "g", "uid": "u", "ownerReferences": [OWNER], "annotations": annotations}
    body = {"metadata": meta, "spec": {"minMember": 2}, "status": {"phase": "Pending", "conditions": conditions}}
    return decode_group(msgspec.json.encode(body))


def test_the_newest_true_condition_of_a_group_is_its_word():
    old = {"type": "Scheduled", "status": "True", "lastTransitionTime": format_time(NOW - 5)}
    new = {"type": "Unschedulable", "status": "True", "lastTransitionTime": AT, "message": "no room"}
    past = {"type": "Other", "status": "False", "lastTransitionTime": format_time(NOW + 5)}
    found = group([old, new, past])
    assert (found.condition, found.message, found.unschedulable, found.since) == ("Unschedulable", "no room", True, NOW)
    assert (group([old]).condition, group([old]).unschedulable) == ("", False)


def test_a_group_says_its_version_or_nothing():
    assert group([]).job_version is None
    assert group([], **{"volcano.sh/job-version": "4"}).job_version == 4

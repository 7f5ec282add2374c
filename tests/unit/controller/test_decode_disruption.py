"""What the decoder tells of a Pod that somebody took away."""

from datetime import UTC, datetime

import pytest
from tests.unit.controller.binary import pod_answer

from vcjob.controller.decode_pods import decode_pod


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param({"reason": "Evicted"}, "Evicted", id="the kubelet's word comes first"),
        pytest.param({}, "", id="nobody says why"),
        pytest.param(
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            "EvictionByEvictionAPI",
            id="a drained node",
        ),
        pytest.param(
            {"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}]},
            "",
            id="a preemption that was called off",
        ),
    ],
)
def test_the_reason_of_a_disruption_is_known(status: dict[str, object], reason: str) -> None:
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {}, "status": {"phase": "Running", **status}}
    assert decode_pod(pod_answer(pod)).reason == reason


def gc(phase: str, reason: str = "DeletionByPodGC", **meta: object) -> bytes:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    condition["lastTransitionTime"] = "2026-01-01T00:00:07Z"
    status = {"phase": phase, "reason": "NodeLost", "conditions": [condition]}
    return pod_answer({"metadata": {"name": "p", "uid": "u", **meta}, "spec": {}, "status": status})


def test_a_pod_whose_node_is_gone_is_as_good_as_deleted() -> None:
    pod = decode_pod(gc("Failed"))
    assert (pod.orphaned, pod.deleted) == (True, datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC).timestamp())
    assert pod.was_taken
    assert pod.has_failed


@pytest.mark.parametrize("answer", [gc("Running"), gc("Succeeded"), gc("Failed", "EvictionByEvictionAPI")])
def test_no_other_pod_is_deleted_before_somebody_asks_for_it(answer: bytes) -> None:
    pod = decode_pod(answer)
    assert (pod.orphaned, pod.deleted) == (False, None)

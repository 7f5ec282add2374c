"""What the decoder tells of a Pod that somebody took away."""

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

"""A real API server's Pods in protobuf say what its JSON says."""

from datetime import datetime
from typing import Any

from tests.integration.harness.api import PODS, Api, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.unit.controller.binary import pod_answer

from vcjob.controller.decode_pods import decode_pod, decode_pods
from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.kube.protobuf import PROTOBUF
from vcjob.lifecycle.pod import Exit, Pod

ENDED = "2026-03-04T05:06:07Z"
CONTAINER = {"image": "i", "terminationMessagePolicy": "File"}


def pod(name: str) -> dict[str, Any]:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u-1", "controller": True}
    return {
        "metadata": {
            "name": name,
            "labels": {"volcano.sh/job-name": "j", "volcano.sh/partition": "2"},
            "annotations": {
                "volcano.sh/task-spec": "w",
                "volcano.sh/task-index": "3",
                "volcano.sh/job-version": "4",
                "volcano.sh/job-retry-count": "1",
                "own": "äöü \u4e2d\u6587 \U0001f600",
            },
            "ownerReferences": [owner],
            "finalizers": ["example.com/held"],
        },
        "spec": {
            "nodeName": "nowhere",  # Pods that go and have no node are called Failed by the cluster
            "restartPolicy": "Never",
            "initContainers": [{"name": "side", **CONTAINER, "restartPolicy": "Always"}, {"name": "init", **CONTAINER}],
            "containers": [{"name": "main", **CONTAINER}, {"name": "second", **CONTAINER}],
        },
    }


def status_of(name: str, state: dict[str, Any], *, ready: bool = False) -> dict[str, Any]:
    return {"name": name, "image": "i", "imageID": "i", "ready": ready, "restartCount": 2, "state": state}


STATUSES: list[dict[str, Any]] = [
    {"phase": "Pending"},
    {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}],
    },
    {"phase": "Pending", "containerStatuses": [status_of("main", {"waiting": {"reason": "ImagePullBackOff"}})]},
    {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ENDED}],
        "containerStatuses": [status_of(name, {"running": {}}, ready=True) for name in ("main", "second")],
    },
    {
        "phase": "Failed",
        "reason": "Evicted",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
        "containerStatuses": [
            status_of("main", {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": ENDED}}),
            status_of("second", {"terminated": {"exitCode": 0, "reason": "Completed"}}),
        ],
        "initContainerStatuses": [
            status_of("side", {"terminated": {"exitCode": 143}}),
            status_of("init", {"terminated": {"exitCode": 2, "finishedAt": ENDED}}),
        ],
    },
]


async def both(client: ApiClient, api: Api, name: str, namespace: str) -> tuple[Pod, Pod] | None:
    """Return the Pod as protobuf and as JSON tell of it; None when it has changed in between, for it has no owner."""
    said = decode_pod(pod_answer(await api.get(PODS, name, namespace)))
    found = decode_pod(await client.get(PODS.path(namespace, name=name), accept=PROTOBUF))
    return (found, said) if found.version == said.version else None


async def test_all_that_is_read_is_the_same_in_both_forms(api: Api, namespace: str, control_plane: ControlPlane):
    credentials = load_credentials(kubeconfig=control_plane.admin_kubeconfig, context=None)
    async with ApiClient(credentials, user_agent="test") as client:
        for number, status in enumerate(STATUSES):
            name = f"p-{number}"
            await api.create(PODS, pod(name), namespace)
            if number % 2:
                await api.delete(PODS, name, namespace)  # it has a finalizer, and so stays
            await api.patch(PODS, name, {"status": status}, namespace, subresource="status", kind="merge")
            found, said = await eventually(lambda name=name: both(client, api, name, namespace))
            assert found == said, status
            assert (found.phase, found.task, found.index, found.job) == (status["phase"], "w", 3, "j")
            assert (found.owner_uid, found.job_version, found.retry) == ("u-1", 4, 1)
            assert found.deleted is not None or number % 2 == 0
        version, listed = decode_pods(await client.get(PODS.path(namespace), accept=PROTOBUF))
    assert {known.name for known in listed} == {f"p-{number}" for number in range(len(STATUSES))}
    assert all(known.version <= version for known in listed)
    last = next(known for known in listed if known.name == "p-4")
    assert last.exits == (
        Exit(container="main", code=137, reason="OOMKilled", init=False),
        Exit(container="second", code=0, reason="Completed", init=False),
        Exit(container="init", code=2, reason="", init=True),
    )
    assert last.since == datetime.fromisoformat(ENDED).timestamp()
    for name in (known.name for known in listed):
        # In this order, for they have no owner: without its finalizer the collector may have taken it away already.
        await api.delete(PODS, name, namespace, grace_s=0)
        await api.patch(PODS, name, {"metadata": {"finalizers": None}}, namespace, kind="merge")

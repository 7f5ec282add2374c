"""A Node that is deleted takes its Pods with it: the Pod garbage collector makes them Failed and then deletes them."""

import uuid

import pytest
from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.harness.api import JOBS, NAMESPACES, NODES, Api, Object, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import in_phase, job, pods_of, task

COLLECTED_S = 180.0  # the collector looks each 20 s, and gives a Node 40 s to come back


def on_node(name: str, node: str, pods: int, *events: str) -> Object:
    policies = [{"event": event, "action": "RestartJob"} for event in events]
    return job(name, task("w", pods, pod={"nodeSelector": {"kubernetes.io/hostname": node}}), policies=policies)


def fake_node(name: str) -> Object:
    room = {"cpu": "8", "memory": "8Gi", "pods": "20"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": room, "allocatable": room}}


@pytest.mark.parametrize("away", [False, True], ids=["the operator watches", "the operator is away"])
async def test_a_lost_node_is_an_eviction_and_a_failure(
    fake_node_plane: ControlPlane, operator: StartOperator, away: bool
):
    name = f"lost-{uuid.uuid4().hex[:8]}"
    async with Api.connected(fake_node_plane.admin_kubeconfig) as api:
        await make_namespace(api, name=name)
        await api.create(NODES, fake_node(name))
        process = await operator("--namespace", name, kubeconfig=fake_node_plane.operator_kubeconfig)
        answers = {"evicted": ("PodEvicted",), "alone": ("PodEvicted",), "any": ("*",), "unanswered": ()}
        if not away:  # of a Pod that is gone nobody can tell whether it had failed
            answers["failed"] = ("PodFailed",)
        for wanted, events in answers.items():
            await api.create(JOBS, on_node(wanted, name, 1 if wanted == "alone" else 3, *events), name)
        for wanted in answers:
            await in_phase(api, wanted, name, "Running")
        known = {pod["metadata"]["uid"] for wanted in answers for pod in (await pods_of(api, wanted, name)).values()}
        if away:
            await process.stop()
        await api.delete(NODES, name)

        async def replaced() -> bool:
            left = {pod["metadata"]["uid"] for wanted in answers for pod in (await pods_of(api, wanted, name)).values()}
            return known.isdisjoint(left) and len(left) == (0 if away else len(known))

        await eventually(replaced, timeout_s=COLLECTED_S, what="the end of the Pods")
        if away:
            await process.start()
        for wanted, events in answers.items():
            await in_phase(api, wanted, name, "Pending", timeout_s=60)
            status = (await api.get(JOBS, wanted, name))["status"]
            assert status.get("retryCount", 0) == (1 if events else 0), status
        await api.delete(NAMESPACES, name)

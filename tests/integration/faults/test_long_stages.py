"""While many Pods are made slowly, a Job is not out of reach: it shows how far it is, and does what it is told."""

import pytest
from tests.integration.conftest import StartOperator
from tests.integration.faults.proxy import FaultProxy, Slow
from tests.integration.harness.api import COMMANDS, JOBS, PODS, Api, Object, eventually
from tests.integration.harness.jobs import events_of, in_phase, job, task

MANY = 2000


@pytest.fixture
async def big(api: Api, namespace: str, proxy: FaultProxy, operator: StartOperator) -> str:
    """A Job whose first Pods are there, and whose last ones will not be for a quarter of a minute."""
    proxy.inject(Slow(seconds=0.5), "POST", path="/pods")
    await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig)
    await api.create(JOBS, job("big", task("w", MANY), minAvailable=1), namespace)
    await eventually(lambda: some_pods(api, namespace))
    return "big"


async def some_pods(api: Api, namespace: str) -> bool:
    return bool((await api.call("GET", f"{PODS.path(namespace)}?limit=1"))["items"])


async def no_pods(api: Api, namespace: str) -> bool:
    return not await some_pods(api, namespace)


async def test_its_status_keeps_up(api: Api, namespace: str, big: str):
    async def told() -> Object | None:
        found = await api.get(JOBS, big, namespace)
        return found if found.get("status", {}).get("pending", 0) > 1 else None

    found = await eventually(told)
    assert 1 < found["status"]["pending"] < MANY
    assert found["status"]["state"]["phase"] == "Pending"


async def test_a_command_is_carried_out_at_once(api: Api, namespace: str, big: str):
    uid = (await api.get(JOBS, big, namespace))["metadata"]["uid"]
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": big, "uid": uid}
    kind = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command"}
    command = kind | {"metadata": {"name": "stop"}, "action": "AbortJob", "target": target}
    await api.create(COMMANDS, command, namespace)
    aborted = await in_phase(api, big, namespace, "Aborted", timeout_s=60)
    made = await eventually(lambda: events_of(api, big, namespace, reason="SuccessfulCreate"))
    assert len(made) == 1
    assert int(made[0]["message"].split()[1]) < MANY
    assert aborted["status"].get("pending", 0) == 0
    await eventually(lambda: no_pods(api, namespace), timeout_s=60)

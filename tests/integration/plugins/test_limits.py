"""Large Jobs: what Linux and Kubernetes cannot take is left out and named, and the Job runs."""

import pytest
from tests.integration.conftest import Standing
from tests.integration.harness.api import CONFIG_MAPS, JOBS, POD_GROUPS, SECRETS, Api, Object, eventually
from tests.integration.harness.jobs import env_of, events_of, in_phase, job, pods_of, pods_when, state_when, task

ENV_MAX = 128 * 1024
OBJECT_MAX = 1024 * 1024

pytestmark = pytest.mark.xdist_group("limits")


async def test_2000_replicas_with_env_svc_and_ssh(standing: Standing, api: Api):
    place, count = standing.namespace, 2000
    body = job(
        "large", task("worker", count, pod={"schedulerName": "nobody"}), plugins={"env": [], "svc": [], "ssh": []}
    )
    await api.create(JOBS, body, place)

    async def all_pending() -> bool:
        status = (await api.get(JOBS, "large", place)).get("status", {})
        assert status.get("pending") == count, f"{status.get('pending')} Pods"
        return True

    await eventually(all_pending, timeout_s=120, every_s=0.5)
    pods = await pods_of(api, "large", place)
    assert len(pods) == count
    last = pods[f"large-worker-{count - 1}"]
    assert env_of(last)["VC_TASK_INDEX"] == str(count - 1)
    hosts = (await api.get(CONFIG_MAPS, "large-svc", place))["data"]
    assert hosts["worker.host"].count("\n") == count - 1
    assert hosts["VC_WORKER_NUM"] == str(count)
    assert ("VC_WORKER_HOSTS" in env_of(last)) == (len(hosts["VC_WORKER_HOSTS"]) < ENV_MAX)
    assert await events_of(api, "large", place, reason="PluginLimit") == []
    await api.delete(JOBS, "large", place)

    async def are_gone() -> bool:
        return await pods_of(api, "large", place) == {}

    await eventually(are_gone, timeout_s=120, every_s=1.0)


async def test_beyond_the_limits_the_job_runs_without_what_does_not_fit(standing_gang: Standing, api: Api):
    place, name = standing_gang.namespace, "beyond-the-limits-of-one-object"
    # The second task waits for the first, so that its Pods are never made.
    body = job(
        name,
        task("first", 1),
        task("a", 6000, dependsOn={"name": ["first"]}),
        task("b", 6000, dependsOn={"name": ["first"]}),
        minAvailable=1,
        plugins={
            "env": [],
            "svc": [],
            "ssh": [],
            "mpi": ["--master=first", "--worker=a"],
            "tensorflow": ["--worker=a"],
        },
    )
    created = await api.create(JOBS, body, place)
    await state_when(api, name, place, phase="Pending", reason="PodGroupPending")
    hosts = (await api.get(CONFIG_MAPS, f"{name}-svc", place))["data"]
    assert sum(map(len, hosts.values())) <= OBJECT_MAX
    assert "a.host" in hosts
    assert hosts["VC_A_NUM"] == "6000"
    assert "VC_A_HOSTS" not in hosts or len(hosts["VC_A_HOSTS"]) > ENV_MAX
    secret: Object = await api.get(SECRETS, f"{name}-ssh", place)
    assert sum(map(len, secret["data"].values())) <= OBJECT_MAX * 4 / 3 + 4

    group = f"{name}-{created['metadata']['uid']}"
    await api.patch(POD_GROUPS, group, {"status": {"phase": "Inqueue"}}, place)
    (pod,) = (await pods_when(api, name, place, count=1)).values()
    env = env_of(pod)
    assert {"VC_A_NUM", "VC_B_NUM", "VC_FIRST_HOSTS"} <= set(env)
    assert not {"VC_A_HOSTS", "VC_B_HOSTS", "MPI_HOST", "TF_CONFIG"} & set(env)
    await in_phase(api, name, place, "Pending")

    async def is_told() -> list[Object]:
        said = await events_of(api, name, place, reason="PluginLimit")
        messages = " ".join(event["message"] for event in said)
        for word in ("VC_A_HOSTS", "VC_B_HOSTS", "MPI_HOST", "TF_CONFIG", "the config would not fit"):
            assert word in messages, messages
        return said

    said = await eventually(is_told, timeout_s=60)
    assert {event["type"] for event in said} == {"Warning"}
    await api.delete(JOBS, name, place)

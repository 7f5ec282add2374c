"""The objects of plugins through a Job's life: they follow its scale, outlive its restarts and go with its end."""

import base64

import pytest
from tests.integration.conftest import Standing
from tests.integration.harness.api import (
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICES,
    Api,
    Object,
    eventually,
)
from tests.integration.harness.jobs import ask, in_phase, job, play, pods_of, pods_when, run_to, state_when, task

PLUGINS: dict[str, list[str]] = {"env": [], "svc": [], "ssh": []}


async def objects(api: Api, name: str, place: str) -> dict[str, Object | None]:
    """The plugin objects of a Job."""
    named = ((SERVICES, name), (CONFIG_MAPS, f"{name}-svc"), (SECRETS, f"{name}-ssh"), (NETWORK_POLICIES, name))
    return {kind.plural: await api.find(kind, title, place) for kind, title in named}


async def uids(api: Api, name: str, place: str) -> dict[str, str]:
    return {kind: found["metadata"]["uid"] for kind, found in (await objects(api, name, place)).items() if found}


async def test_scaling_refreshes_hosts_and_config_and_keeps_keys(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("scale", task("w", 2), minAvailable=1, plugins=PLUGINS), place)
    await pods_when(api, "scale", place, count=2)
    first = (await objects(api, "scale", place))["secrets"]
    assert first is not None
    for replicas in (4, 1):
        patch = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas}]
        await api.patch(JOBS, "scale", patch, place, kind="json")
        await pods_when(api, "scale", place, count=replicas)
        found = await objects(api, "scale", place)
        hosts, secret = found["configmaps"], found["secrets"]
        assert hosts is not None and secret is not None
        names = [f"scale-w-{index}.scale" for index in range(replicas)]
        assert hosts["data"] == {"VC_W_HOSTS": ",".join(names), "VC_W_NUM": str(replicas), "w.host": "\n".join(names)}
        config = base64.b64decode(secret["data"]["config"]).decode()
        assert config.count("HostName") == replicas
        for key in ("id_rsa", "id_rsa.pub", "authorized_keys"):
            assert secret["data"][key] == first["data"][key]
        assert secret["metadata"]["uid"] == first["metadata"]["uid"]


async def test_scaling_while_the_operator_is_down_is_caught_up(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("down", task("w", 1), minAvailable=1, plugins=PLUGINS), place)
    await pods_when(api, "down", place, count=1)
    await in_phase(api, "down", place, "Pending")
    secret = (await objects(api, "down", place))["secrets"]
    await standing.operator.kill()
    patch = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]
    await api.patch(JOBS, "down", patch, place, kind="json")
    await standing.operator.start()
    await pods_when(api, "down", place, count=3)
    found = await objects(api, "down", place)
    assert secret and found["configmaps"] and found["secrets"]
    assert found["configmaps"]["data"]["VC_W_NUM"] == "3"
    assert found["secrets"]["data"]["id_rsa"] == secret["data"]["id_rsa"]


@pytest.mark.parametrize(
    ("name", "ends", "phase"),
    [("ends-well", "Succeeded", "Completed"), ("ends-badly", "Failed", "Failed"), ("ended", "", "Terminated")],
)
async def test_they_go_when_the_job_has_ended(name: str, ends: str, phase: str, standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job(name, task("w", 2), plugins=PLUGINS), place)
    if ends:
        await run_to(api, name, place, ends, count=2)
    else:
        await play(api, (await pods_when(api, name, place, count=2)).values(), "Running")
        await in_phase(api, name, place, "Running")
        await ask(api, "TerminateJob", name, place)
    await in_phase(api, name, place, phase)

    async def are_gone() -> bool:
        return await uids(api, name, place) == {}

    await eventually(are_gone, what="the end of the plugin objects")
    done = await api.get(JOBS, name, place)
    assert not [key for key in done["status"].get("controlledResources", {}) if key.startswith("plugin-")]


async def test_they_outlive_restarts_suspension_and_deleted_pods(standing: Standing, api: Api):
    place = standing.namespace
    body = job(
        "restart",
        task("w", 2),
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
        maxRetry=5,
        plugins=PLUGINS,
    )
    await api.create(JOBS, body, place)
    pods = await pods_when(api, "restart", place, count=2)
    await play(api, pods.values(), "Running")
    await in_phase(api, "restart", place, "Running")
    before = await uids(api, "restart", place)
    keys = (await objects(api, "restart", place))["secrets"]
    assert len(before) == 4 and keys is not None

    await play(api, list(pods.values())[:1], "Failed")
    await others_than(api, pods, place)
    assert await uids(api, "restart", place) == before
    await ask(api, "AbortJob", "restart", place)
    await in_phase(api, "restart", place, "Aborted")
    assert await uids(api, "restart", place) == before
    await ask(api, "ResumeJob", "restart", place)
    await pods_when(api, "restart", place, count=2)
    await state_when(api, "restart", place, phase="Pending", timeout_s=30)
    assert await uids(api, "restart", place) == before
    after = (await objects(api, "restart", place))["secrets"]
    assert after is not None and after["data"] == keys["data"]


async def others_than(api: Api, pods: dict[str, Object], place: str) -> None:
    """Wait until every Pod has been made anew."""
    old = {pod["metadata"]["uid"] for pod in pods.values()}

    async def are_new() -> bool:
        now = await pods_of(api, "restart", place)
        return len(now) == len(pods) and not old & {pod["metadata"]["uid"] for pod in now.values()}

    await eventually(are_new, timeout_s=40, what="new Pods")


async def test_they_go_with_the_job(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("deleted", task("w", 2), plugins=PLUGINS), place)
    await pods_when(api, "deleted", place, count=2)
    await api.delete(JOBS, "deleted", place, propagation="Foreground")

    async def are_gone() -> bool:
        return await uids(api, "deleted", place) == {} and await pods_of(api, "deleted", place) == {}

    await eventually(are_gone, what="the garbage collection")


async def test_lost_objects_of_a_new_run_are_made_again(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("lost", task("w"), plugins=PLUGINS), place)
    await play(api, (await pods_when(api, "lost", place, count=1)).values(), "Running")
    await in_phase(api, "lost", place, "Running")
    await api.delete(CONFIG_MAPS, "lost-svc", place)
    await ask(api, "RestartJob", "lost", place)

    async def is_back() -> bool:
        return await api.find(CONFIG_MAPS, "lost-svc", place) is not None

    await eventually(is_back, timeout_s=30)


@pytest.mark.parametrize("pods_first", [True, False])
async def test_who_deletes_everything_of_a_new_job_gets_everything_anew(standing: Standing, api: Api, pods_first: bool):
    place, name = standing.namespace, f"swept-{str(pods_first).lower()}"
    await api.create(JOBS, job(name, task("w"), plugins=PLUGINS), place)
    pods = await pods_when(api, name, place, count=1)
    before = await uids(api, name, place)

    async def pod_is_anew() -> bool:
        again = await pods_of(api, name, place)
        return again.keys() == pods.keys() and all(
            pod["metadata"]["uid"] != pods[title]["metadata"]["uid"] for title, pod in again.items()
        )

    async def delete_pod() -> None:
        await api.delete(PODS, f"{name}-w-0", place)

    if pods_first:
        await delete_pod()
        await eventually(pod_is_anew)
    for kind, title in (
        (SERVICES, name),
        (CONFIG_MAPS, f"{name}-svc"),
        (SECRETS, f"{name}-ssh"),
        (NETWORK_POLICIES, name),
    ):
        await api.delete(kind, title, place)
    if not pods_first:
        await delete_pod()

    async def are_anew() -> bool:
        now = await uids(api, name, place)
        return now.keys() == before.keys() and not set(now.values()) & set(before.values()) and await pod_is_anew()

    await eventually(are_anew, timeout_s=40)

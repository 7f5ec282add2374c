"""Objects of the wanted names that belong to somebody else are left alone; the Job waits until they are gone."""

import asyncio

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
    Resource,
    eventually,
)
from tests.integration.harness.jobs import events_of, in_phase, job, play, pods_when, state_when, task

PLUGINS: dict[str, list[str]] = {"env": [], "svc": [], "ssh": [], "ray": []}
CONTAINER = {"name": "head", "image": "busybox:1.36"}

FOREIGNERS: dict[str, tuple[Resource, str, Object]] = {
    "f-service": (SERVICES, "f-service", {"spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}}),
    "f-ray": (SERVICES, "f-ray-head-svc", {"spec": {"ports": [{"port": 1}]}}),
    "f-config": (CONFIG_MAPS, "f-config-svc", {"data": {"worker.host": "mine"}}),
    "f-secret": (SECRETS, "f-secret-ssh", {"stringData": {"id_rsa": "mine"}}),
    "f-policy": (NETWORK_POLICIES, "f-policy", {"spec": {"podSelector": {}}}),
    "f-pod": (PODS, "f-pod-head-0", {"spec": {"schedulerName": "nobody", "containers": [CONTAINER]}}),
    "f-labelled": (
        PODS,
        "f-labelled-head-0",
        {"spec": {"schedulerName": "nobody", "containers": [CONTAINER]}},
    ),
}

pytestmark = pytest.mark.xdist_group("foreigners")


def foreigner(name: str, *, job_name: str) -> Object:
    resource, _, content = FOREIGNERS[job_name]
    metadata: Object = {"name": name, "annotations": {"of": "somebody else"}}
    if job_name == "f-labelled":
        metadata["labels"] = {"volcano.sh/job-name": job_name, "volcano.sh/task-spec": "head"}
    return {"apiVersion": resource.version, "metadata": metadata, **content}


async def test_foreign_objects_are_left_alone(standing: Standing, api: Api):
    place = standing.namespace
    before: dict[str, Object] = {}
    for name, (resource, object_name, _) in FOREIGNERS.items():
        kind = {"pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret"}
        body = foreigner(object_name, job_name=name) | {"kind": kind.get(resource.plural, "NetworkPolicy")}
        before[name] = await api.create(resource, body, place)
    for name in FOREIGNERS:
        await api.create(JOBS, job(name, task("head", containers=[CONTAINER]), plugins=PLUGINS), place)

    for name, (_, object_name, _) in FOREIGNERS.items():
        waiting = await state_when(api, name, place, phase="Pending", reason="NameConflict")
        assert object_name in waiting["status"]["state"]["message"]
    await asyncio.sleep(3.0)  # the operator looks again and again
    for name, (resource, object_name, _) in FOREIGNERS.items():
        assert await api.get(resource, object_name, place) == before[name], "not one byte may change"
        (event,) = await eventually(lambda name=name: events_of(api, name, place, reason="NameConflict"))
        assert (event["type"], object_name in event["message"]) == ("Warning", True)
        if resource is not PODS:
            pods = await api.list(PODS, place, labels=f"volcano.sh/job-name={name}")
            assert pods == [], "no Pod may come before the objects"

    for resource, object_name, _ in FOREIGNERS.values():
        await api.delete(resource, object_name, place, grace_s=0)
    for name in FOREIGNERS:
        await play(api, (await pods_when(api, name, place, count=1)).values(), "Running")
        running = await in_phase(api, name, place, "Running")
        assert running["status"]["state"]["reason"] == "PodsRunning"
        for kind, object_name in ((SERVICES, name), (CONFIG_MAPS, f"{name}-svc"), (SECRETS, f"{name}-ssh")):
            assert (await api.get(kind, object_name, place))["metadata"]["ownerReferences"][0]["name"] == name


async def test_what_became_foreign_outlives_the_job(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("adopted", task("w"), plugins={"svc": [], "ssh": []}), place)
    pods = (await pods_when(api, "adopted", place, count=1)).values()
    await in_phase(api, "adopted", place, "Pending")
    await api.patch(SECRETS, "adopted-ssh", {"metadata": {"ownerReferences": None}}, place)
    for name in ("Running", "Succeeded"):
        await play(api, pods, name)
    await in_phase(api, "adopted", place, "Completed")

    async def is_gone() -> bool:
        return await api.find(CONFIG_MAPS, "adopted-svc", place) is None

    await eventually(is_gone)
    await asyncio.sleep(0.5)
    assert await api.find(SECRETS, "adopted-ssh", place), "it was taken out of the Job's hands"

"""What fake nodes do with Pods: run them at once, or as the Pod's annotations say."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.integration.conftest import make_namespace
from tests.integration.harness.api import NAMESPACES, NODES, PODS, Api, Object, eventually, never
from tests.integration.harness.control_plane import ControlPlane


@pytest.fixture(scope="session")
async def fakes(fake_node_plane: ControlPlane) -> AsyncIterator[Api]:
    async with Api.connected(fake_node_plane.admin_kubeconfig) as connected:
        yield connected


@pytest.fixture
async def place(fakes: Api) -> AsyncIterator[str]:
    """A namespace on the cluster with fake nodes."""
    name = f"fakes-{uuid.uuid4().hex[:8]}"
    await make_namespace(fakes, name=name)
    yield name
    await fakes.delete(NAMESPACES, name)


def pod(*, init: tuple[Object, ...] = (), **annotations: str) -> Object:
    """A Pod `p` with one container `main`; `after="1s"` becomes the annotation `vcjob/fake-after`."""
    keys = {f"vcjob/fake-{key.replace('_', '-')}": value for key, value in annotations.items()}
    spec: Object = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}
    if init:
        spec["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": keys}, "spec": spec}


async def in_phase(api: Api, phase: str, *, place: str) -> Object:
    async def look() -> Object | None:
        found = await api.get(PODS, "p", place)
        return found if found["status"]["phase"] == phase else None

    return await eventually(look, what=f"the phase {phase}")


def conditions(found: Object) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}


def exit_codes(statuses: list[dict[str, Any]]) -> list[int | None]:
    return [status["state"].get("terminated", {}).get("exitCode") for status in statuses]


async def test_the_nodes_are_ready(fakes: Api):
    assert [node["metadata"]["name"] for node in await fakes.list(NODES)] == ["fake-0", "fake-1"]


async def test_a_pod_runs_at_once_ready_and_with_an_address(fakes: Api, place: str):
    await fakes.create(PODS, pod(), place)
    found = await in_phase(fakes, "Running", place=place)
    assert conditions(found)["Ready"] == "True"
    assert found["status"]["podIP"].startswith("10.")
    (main,) = found["status"]["containerStatuses"]
    assert (main["ready"], list(main["state"])) == (True, ["running"])


async def test_init_containers_have_ended_and_sidecars_run(fakes: Api, place: str):
    init = ({"name": "first", "image": "any"}, {"name": "side", "image": "any", "restartPolicy": "Always"})
    await fakes.create(PODS, pod(init=init), place)
    found = await in_phase(fakes, "Running", place=place)
    assert exit_codes(found["status"]["initContainerStatuses"]) == [0, None]


@pytest.mark.parametrize(
    ("annotations", "phase", "code"),
    [
        pytest.param({"outcome": "Succeeded"}, "Succeeded", 0, id="succeeded"),
        pytest.param({"outcome": "Failed"}, "Failed", 1, id="failed"),
        pytest.param({"outcome": "Failed", "exit_code": "137"}, "Failed", 137, id="failed with a code"),
        pytest.param({"outcome": "Succeeded", "after": "300ms"}, "Succeeded", 0, id="succeeded after a while"),
    ],
)
async def test_a_pod_ends_as_it_asks(annotations: dict[str, str], phase: str, code: int, fakes: Api, place: str):
    init = ({"name": "first", "image": "any"}, {"name": "side", "image": "any", "restartPolicy": "Always"})
    await fakes.create(PODS, pod(init=init, **annotations), place)
    found = await in_phase(fakes, phase, place=place)
    assert exit_codes(found["status"]["containerStatuses"]) == [code]
    assert exit_codes(found["status"]["initContainerStatuses"]) == [0, 0]
    assert conditions(found)["Ready"] == "False"


async def test_a_failing_init_container_fails_the_pod_before_it_runs(fakes: Api, place: str):
    await fakes.create(PODS, pod(init=({"name": "first", "image": "any"},), init_exit_code="3"), place)
    found = await in_phase(fakes, "Failed", place=place)
    assert exit_codes(found["status"]["initContainerStatuses"]) == [3]
    assert list(found["status"]["containerStatuses"][0]["state"]) == ["waiting"]


async def test_a_pod_that_asks_to_stay_pending_stays_so(fakes: Api, place: str):
    await fakes.create(PODS, pod(outcome="Pending"), place)

    async def is_scheduled() -> bool:
        return "nodeName" in (await fakes.get(PODS, "p", place))["spec"]

    async def has_left_pending() -> bool:
        return bool((await fakes.get(PODS, "p", place))["status"]["phase"] != "Pending")

    await eventually(is_scheduled)
    await never(has_left_pending, within_s=0.5)


async def test_a_deleted_pod_goes_at_once(fakes: Api, place: str):
    await fakes.create(PODS, pod(), place)
    await in_phase(fakes, "Running", place=place)
    await fakes.delete(PODS, "p", place)

    async def is_gone() -> bool:
        return await fakes.find(PODS, "p", place) is None

    await eventually(is_gone, timeout_s=3)


async def test_a_pod_that_stops_slowly_ends_like_on_a_real_node(fakes: Api, place: str):
    created = await fakes.create(PODS, pod(stop_after="300ms", stop_exit_code="143"), place)
    await in_phase(fakes, "Running", place=place)
    await fakes.delete(PODS, "p", place)
    seen = []
    async for event in fakes.watch(PODS, place, since=created["metadata"]["resourceVersion"]):
        seen.append((event.type, event.object["status"]["phase"], "deletionTimestamp" in event.object["metadata"]))
        if event.type == "DELETED":
            break
    changes = list(dict.fromkeys(seen))
    assert changes[-3:] == [("MODIFIED", "Running", True), ("MODIFIED", "Failed", True), ("DELETED", "Failed", True)]

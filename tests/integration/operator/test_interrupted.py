"""The operator killed at every write of a Job's life: the next one leads it to the same end, and nothing is doubled."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.conftest import StartOperator
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
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import in_phase, job, play, pods_when, task
from tests.integration.harness.operator import OperatorProcess
from tests.integration.harness.proxy import Door, Passage, open_door

KINDS = (PODS, CONFIG_MAPS, SERVICES, SECRETS, NETWORK_POLICIES)
PLUGINS: dict[str, list[str]] = {"env": [], "svc": [], "ssh": []}


def body(name: str) -> Object:
    return job(name, task("m", 1), task("w", 2), minAvailable=3, plugins=PLUGINS)


async def objects_of(api: Api, name: str, namespace: str) -> dict[str, Object]:
    """Everything of a Job but what differs from one Job to the next, by kind and name without the Job's."""
    uid = (await api.get(JOBS, name, namespace))["metadata"]["uid"]
    found: dict[str, Object] = {}
    for kind in KINDS:
        for item in await api.list(kind, namespace):
            owners = item["metadata"].get("ownerReferences") or [{}]
            if owners[0].get("uid") == uid:
                title = f"{kind.plural} {item['metadata']['name'].removeprefix(name)}"
                found[title] = normal(item, {name: "JOB", uid: "UID"})
    return found


def normal(item: Object, words: dict[str, str]) -> Any:
    spec = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    if item.get("data") and "id_rsa" in item["data"]:
        spec["data"] = sorted(item["data"])
    kept = {key: item["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
    return replaced({**spec, **kept}, words)


def replaced(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            replaced(key, words): replaced(item, words)
            for key, item in value.items()
            if key not in ("serviceAccount", "volumes", "volumeMounts", "clusterIP")  # with names made by chance
        }
    if isinstance(value, list):
        return [replaced(item, words) for item in value]
    if isinstance(value, str):
        for word, other in words.items():
            value = value.replace(word, other)
    return value


class Killer:
    """Kills the operator at its n-th write about a Job: before the server sees it, or before the operator does."""

    def __init__(self, process: OperatorProcess, door: Door) -> None:
        self.struck = asyncio.Event()
        self._process = process
        self._door = door

    def arm(self, *, before: int = 0, after: int = 0) -> None:
        self.struck.clear()
        asked = answered = 0

        async def strike() -> None:
            await self._process.kill()
            self.struck.set()
            raise ConnectionResetError("the operator is gone")

        async def at_write(method: str, path: str) -> None:
            nonlocal asked
            if "/events" not in path and not self.struck.is_set():
                asked += 1
                if asked == before:
                    await strike()

        async def at_answer(passage: Passage) -> None:
            nonlocal answered
            if "/events" not in passage.path and not self.struck.is_set():
                answered += 1
                if answered == after:
                    await strike()

        self._door.before, self._door.after = at_write, at_answer


async def live(api: Api, name: str, namespace: str) -> dict[str, Object]:
    """Lead a Job to its Pods; return all its objects."""
    await pods_when(api, name, namespace, count=3)
    await in_phase(api, name, namespace, "Pending")
    return await objects_of(api, name, namespace)


async def test_killed_at_any_write_of_a_start(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    async with open_door(control_plane.operator_kubeconfig, folder=tmp_path) as door:
        process = await operator("--namespace", namespace, kubeconfig=door.kubeconfig)
        await api.create(JOBS, body("undisturbed"), namespace)
        expected = await live(api, "undisturbed", namespace)
        assert len(expected) == 3 + 4

        killer = Killer(process, door)
        blows = [{"after": n} for n in range(1, 9)] + [{"before": n} for n in (1, 3, 6)]
        for blow in blows:
            name = "-".join(("j", *blow, *map(str, blow.values())))
            killer.arm(**blow)
            await api.create(JOBS, body(name), namespace)
            async with asyncio.timeout(20):
                await killer.struck.wait()
            door.before = door.after = None
            await process.start(wait_ready=False)
            assert await live(api, name, namespace) == expected, blow

        made = Counter(p.path.rpartition("/")[2] for p in door.writes if (p.method, p.status) == ("POST", 201))
        jobs = len(blows) + 1
        every = {"configmaps": 1, "services": 1, "networkpolicies": 1, "secrets": 1, "pods": 3}
        assert {kind: made[kind] for kind in every} == {kind: count * jobs for kind, count in every.items()}
        assert not [p for p in door.writes if p.method == "DELETE"]
        for item in await api.list(JOBS, namespace):
            assert (item["status"].get("retryCount", 0), item["status"].get("version", 0)) == (0, 0)


async def test_killed_at_any_write_of_an_end(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    async with open_door(control_plane.operator_kubeconfig, folder=tmp_path) as door:
        process = await operator("--namespace", namespace, kubeconfig=door.kubeconfig)
        killer = Killer(process, door)
        for number in range(1, 6):  # the phase Completed, and the removal of four objects
            name = f"e-{number}"
            await api.create(JOBS, body(name), namespace)
            pods = (await pods_when(api, name, namespace, count=3)).values()
            await play(api, pods, "Running")
            await in_phase(api, name, namespace, "Running")
            await asyncio.sleep(1.0)  # the numbers of the status have been written
            killer.arm(after=number)
            await play(api, pods, "Succeeded")
            async with asyncio.timeout(20):
                await killer.struck.wait()
            door.before = door.after = None
            await process.start(wait_ready=False)
            done = await in_phase(api, name, namespace, "Completed")

            async def only_pods(name: str = name) -> bool:
                left = await objects_of(api, name, namespace)
                return sorted(left) == ["pods -m-0", "pods -w-0", "pods -w-1"]

            await eventually(only_pods, what=f"the removal of the objects of {name}")
            assert done["status"]["succeeded"] == 3
            phases = [c["status"] for c in done["status"]["conditions"]]
            assert phases == ["Pending", "Running", "Completed"]

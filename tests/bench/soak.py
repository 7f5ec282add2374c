#!/usr/bin/env python3
"""Let Jobs come and go for an hour, and see that nothing grows: `make soak` (`make soak SOAK_ARGS="--minutes 3"`).

Starts a control plane with fake nodes and the operator as a process of its own. In rounds of about a minute Jobs of
many kinds are made side by side: such that complete, such that fail and restart, such that are aborted, resumed, scaled
or deleted half-way, with and without plugins. Then everything goes, and when the operator has nothing left to do its
memory, its asyncio tasks and its open connections are read from /metrics. They may differ between the rounds, but not
rise: the last ones are compared with the first ones after the warm-up. Prints a line a round; ends with 1 when one
of them has grown or a Job has not ended as it should.
"""

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.integration.harness.api import COMMANDS, JOBS, NAMESPACES, PODS, Api, Object, Refused, eventually
from tests.integration.harness.control_plane import running_cluster
from tests.integration.harness.operator import OperatorProcess

NAMESPACE_COUNT: Final = 4
SIDE_BY_SIDE: Final = 12
CHURN_S: Final = 45.0
WARM_UP_S: Final = 660.0  # what is remembered of Events is full then; less in a short run ...
WARM_UP_SHARE: Final = 0.3  # ... but not more than this of it
JOB_TIMEOUT_S: Final = 120.0

MEMORY_SHARE: Final = 0.10  # above the first rounds; what the allocator keeps varies that much
MEMORY_MIB: Final = 4.0
TASKS: Final = 3
CONNECTIONS: Final = 12  # kept ones of the last burst


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The operator at rest."""

    memory_mib: float
    tasks: int
    connections: int  # open file descriptors, nearly all of them connections
    stored: int  # Pods and Jobs that it still knows


async def read(process: OperatorProcess) -> Reading:
    _, page = await process.get(f"{process.metrics_url}/metrics")

    def total(name: str) -> float:
        return sum(float(value) for value in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.M))

    return Reading(
        memory_mib=round(total("process_resident_memory_bytes") / 2**20, 1),
        tasks=int(total("vcjob_tasks")),
        connections=int(total("process_open_fds")),
        stored=int(total("vcjob_store_objects") + total("vcjob_jobs")),
    )


def job(name: str, *, replicas: int, outcome: str, after: str, **spec: Any) -> Object:
    template = {
        "metadata": {"annotations": {"vcjob/fake-outcome": outcome, "vcjob/fake-after": after}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.36"}]},
    }
    task = {"name": "w", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "default-scheduler", "tasks": [task], **spec},
    }


class Churn:
    """Users, as a loop of lives."""

    def __init__(self, api: Api, namespaces: list[str], chance: random.Random) -> None:
        self.lives: Counter[str] = Counter()
        self._api = api
        self._namespaces = namespaces
        self._chance = chance
        self._number = 0

    async def run(self, seconds: float) -> None:
        """Live lives side by side for about so long."""
        until = time.monotonic() + seconds

        async def user() -> None:
            while time.monotonic() < until:
                await self._life()

        async with asyncio.TaskGroup() as group:
            for _ in range(SIDE_BY_SIDE):
                group.create_task(user())

    async def _life(self) -> None:
        self._number += 1
        name, namespace = f"j{self._number}", self._chance.choice(self._namespaces)
        kind = self._chance.choice(("completes", "fails", "aborted", "scaled", "deleted", "invalid"))
        plugins = self._chance.choice(({}, {"svc": [], "env": []}, {"svc": [], "env": [], "ssh": []}))
        replicas = self._chance.randint(1, 6)
        ends = kind in ("completes", "fails")
        body = job(
            name,
            replicas=replicas,
            outcome="Failed" if kind == "fails" else "Succeeded",
            after="200ms" if ends else "600s",
            plugins={"nope": []} if kind == "invalid" else plugins,
            minAvailable=1,
            maxRetry=1,
            policies=[{"event": "PodFailed", "action": "RestartJob"}],
        )
        made = await self._api.create(JOBS, body, namespace)
        uid = made["metadata"]["uid"]
        match kind:
            case "completes":
                await self._in_phase(name, namespace, "Completed")
            case "fails" | "invalid":
                await self._in_phase(name, namespace, "Failed")
            case "aborted":
                await self._in_phase(name, namespace, "Running")
                await self._order(name, namespace, uid, "AbortJob")
                await self._in_phase(name, namespace, "Aborted")
                await self._order(name, namespace, uid, "ResumeJob")
                await self._in_phase(name, namespace, "Running")
            case "scaled":
                await self._in_phase(name, namespace, "Running")
                change = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas + 3}]
                await self._api.patch(JOBS, name, change, namespace, kind="json")
            case _:
                pass  # deleted while it is being made
        self.lives[kind] += 1
        await self._api.delete(JOBS, name, namespace)

    async def _in_phase(self, name: str, namespace: str, phase: str) -> None:
        async def look() -> bool:
            found = await self._api.get(JOBS, name, namespace)
            have = found.get("status", {}).get("state", {})
            assert have.get("phase") == phase, f"{have}"
            return True

        await eventually(look, timeout_s=JOB_TIMEOUT_S, every_s=0.2, what=f"{phase} of {namespace}/{name}")

    async def _order(self, name: str, namespace: str, uid: str, action: str) -> None:
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": uid}
        command = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": f"{name}-"},
            "action": action,
            "target": target,
        }
        await self._api.create(COMMANDS, command, namespace)


async def drain(api: Api, process: OperatorProcess, namespaces: list[str]) -> Reading:
    """Wait until nothing is left in the cluster and in the operator; return what it is like then."""

    async def is_empty() -> bool:
        for namespace in namespaces:
            jobs, pods = await api.list(JOBS, namespace), await api.list(PODS, namespace)
            assert not jobs and not pods, f"{len(jobs)} Jobs, {len(pods)} Pods in {namespace}"
        return True

    await eventually(is_empty, timeout_s=JOB_TIMEOUT_S, every_s=1.0, what="the end of all Jobs")

    async def is_at_rest() -> Reading:
        reading = await read(process)
        assert reading.stored == 0, f"the operator still knows {reading.stored} objects"
        return reading

    await eventually(is_at_rest, timeout_s=60, every_s=1.0, what="rest")
    calm = []
    for _ in range(5):  # kopf keeps a task for each object that it has heard of within a second
        await asyncio.sleep(1)
        calm.append(await read(process))
    return min(calm, key=lambda reading: reading.tasks)


def find_growth(readings: list[Reading]) -> list[str]:
    """Return a sentence for each thing that has grown between the first and the last rounds."""
    count = max(1, len(readings) // 4)
    early, late = readings[:count], readings[-count:]
    found = []
    for name, slack in (
        ("memory_mib", MEMORY_SHARE * max(r.memory_mib for r in early) + MEMORY_MIB),
        ("tasks", float(TASKS)),
        ("connections", float(CONNECTIONS)),
    ):
        before, after = max(getattr(r, name) for r in early), min(getattr(r, name) for r in late)
        if after > before + slack:
            found.append(f"{name} rose from {before} to {after}, which is more than {slack:.1f}")
    return found


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[Api, OperatorProcess, list[str]]]:
    with running_cluster("soak", home=folder, flags=("--nodes=2",)) as plane:
        async with Api.connected(plane.admin_kubeconfig) as api:
            namespaces = [f"soak-{number}" for number in range(NAMESPACE_COUNT)]
            for namespace in namespaces:
                await api.create(NAMESPACES, {"metadata": {"name": namespace}})
            process = OperatorProcess(kubeconfig=plane.operator_kubeconfig, log=folder / "operator.log", env={})
            await process.start()
            try:
                yield api, process, namespaces
            finally:
                await process.stop()


async def soak(minutes: float, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="vcjob-soak-") as folder:
        async with running(Path(folder)) as (api, process, namespaces):
            churn = Churn(api, namespaces, random.Random(seed))
            readings: list[Reading] = []
            began = time.monotonic()
            until, warm = began + minutes * 60, began + min(WARM_UP_S, minutes * 60 * WARM_UP_SHARE)
            rounds = 0
            try:
                while time.monotonic() < until or len(readings) < 2:
                    await churn.run(min(CHURN_S, max(10.0, until - time.monotonic())))
                    reading, rounds = await drain(api, process, namespaces), rounds + 1
                    if time.monotonic() >= warm:
                        readings.append(reading)
                    print(
                        f"{rounds:3}: {churn.lives.total():6} lives, {reading.memory_mib:6.1f} MiB, "
                        f"{reading.tasks:3} tasks, {reading.connections:3} descriptors",
                        flush=True,
                    )
            except* (AssertionError, Refused):
                print(process.last_lines(100))
                raise
    growth = find_growth(readings)
    print("\n".join(growth) if growth else f"nothing has grown; {dict(churn.lives)}")
    return 1 if growth else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    return asyncio.run(soak(given.minutes, given.seed))


if __name__ == "__main__":
    sys.exit(main())

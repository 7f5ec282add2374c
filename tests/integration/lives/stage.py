"""Where lives are played: one operator, one namespace, a watch that remembers every version of every Job."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.integration.conftest import make_namespace
from tests.integration.harness.api import JOBS, NAMESPACES, POD_GROUPS, PODS, Api, Object, Refused, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import ask, pods_of
from tests.integration.harness.operator import OperatorProcess
from tests.integration.lives.kubelet import Fate, Kubelet, follow

__all__ = ("Stage", "Steps", "open_stage", "shows")

LIFE_S: Final = 60.0
Steps = Sequence[str]


def shows(job: Object, phase: str) -> bool:
    """Return whether a version of a Job shows the phase as its watchers expect to see it."""
    status, spec = job.get("status", {}), job["spec"]
    if status.get("state", {}).get("phase") != phase:
        return False

    def count(*names: str) -> int:
        return sum(status.get(name, 0) for name in names)

    match phase:
        case "Pending":
            total = sum(task.get("replicas", 0) for task in spec["tasks"])
            none = count("pending", "running", "succeeded", "failed") == 0
            return none or total - count("terminating") >= status.get("minAvailable", 0)
        case "Terminating" | "Aborting" | "Restarting" | "Completing":
            return count("terminating") > 0
        case "Terminated" | "Aborted" | "Completed":
            return count("pending", "running", "terminating") == 0
        case "Running":
            return count("running") >= spec.get("minAvailable", 0)
    return True


class Stage:
    """One namespace with its operator, kubelet and memory of all Jobs."""

    def __init__(self, api: Api, namespace: str, kubelet: Kubelet) -> None:
        self.api = api
        self.namespace = namespace
        self.kubelet = kubelet
        self._seen: dict[str, list[Object]] = {}
        self._news = asyncio.Event()

    async def remember(self) -> None:
        """Follow the Jobs until cancelled."""
        async for event in follow(self.api, JOBS, self.namespace):
            if event.type != "DELETED":
                self._seen.setdefault(event.object["metadata"]["name"], []).append(event.object)
                self._news.set()
                self._news = asyncio.Event()

    async def begin(self, job: Object, **fates: Fate) -> Object:
        """Create a Job; keywords are the fates of its tasks' Pods."""
        name = job["metadata"]["name"]
        for task, fate in fates.items():
            self.kubelet.fates[(name, task)] = fate
        return await self.api.create(JOBS, job, self.namespace)

    async def sees(self, name: str, *phases: str, since: int = 0, within_s: float = LIFE_S) -> int:
        """Wait until a watcher has seen the phases in this order; return where to go on.

        Other versions in between are passed over. Raises AssertionError with all that was seen.
        """
        at, left = since, list(phases)
        try:
            async with asyncio.timeout(within_s):
                while left:
                    news = self._news
                    seen = self._seen.get(name, [])
                    while left and at < len(seen):
                        if shows(seen[at], left[0]):
                            left.pop(0)
                        at += 1
                    if left:
                        await news.wait()
        except TimeoutError:
            raise AssertionError(
                f"{name} did not come to {left[0]} of {phases}:\n{self.tell(name, since=since)}"
            ) from None
        return at

    def tell(self, name: str, *, since: int = 0) -> str:
        """Return all versions of a Job's status that were seen, for people."""
        states = [job.get("status", {}) for job in self._seen.get(name, [])[since:]]
        return "\n".join(f"  {s.get('state')} { ({k: s[k] for k in s if isinstance(s[k], int)}) }" for s in states)

    async def job(self, name: str) -> Object:
        return await self.api.get(JOBS, name, self.namespace)

    async def pods(self, name: str) -> dict[str, Object]:
        return await pods_of(self.api, name, self.namespace)

    async def scale(self, name: str, replicas: int, *, minimum: int) -> None:
        job = await self.job(name)
        patch = [
            {"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas},
            {"op": "add", "path": "/spec/tasks/0/minAvailable", "value": minimum},
            {"op": "replace", "path": "/spec/minAvailable", "value": minimum},
        ]
        assert job["spec"]["tasks"]
        await self.api.patch(JOBS, name, patch, self.namespace, kind="json")

    async def delete_pod(self, name: str) -> None:
        await self.api.delete(PODS, name, self.namespace)

    async def command(self, name: str, action: str) -> None:
        """Ask for an action, as `vcctl` does."""
        await ask(self.api, action, name, self.namespace)

    async def group(self, name: str, *, phase: str | None = None) -> Object | None:
        """Return the group of a Job; with `phase` only if it is in that."""
        found = [
            group
            for group in await self.api.list(POD_GROUPS, self.namespace)
            if group["metadata"]["ownerReferences"][0]["name"] == name
            and phase in (None, group.get("status", {}).get("phase"))
        ]
        return found[0] if found else None

    async def ready(self, name: str, count: int) -> None:
        """Wait until so many Pods run and no other is there."""

        async def look() -> bool:
            phases = [pod["status"]["phase"] for pod in (await self.pods(name)).values()]
            assert phases == ["Running"] * count, f"Pods of {name} are {phases}"
            return True

        await eventually(look, timeout_s=LIFE_S)

    async def delete(self, name: str) -> None:
        """Delete a Job and wait until nothing of it is left."""
        try:
            await self.api.delete(JOBS, name, self.namespace)
        except Refused as refused:
            if refused.code != 404:
                raise

        async def gone() -> bool:
            assert await self.api.find(JOBS, name, self.namespace) is None
            assert await self.group(name) is None
            assert not await self.pods(name)
            return True

        await eventually(gone, timeout_s=LIFE_S, what=f"the end of {name}")


@asynccontextmanager
async def open_stage(
    api: Api, plane: ControlPlane, *, folder: Path, gang: str, kubeconfig: Path | None = None
) -> AsyncIterator[tuple[Stage, OperatorProcess]]:
    """Yield a stage and its operator, which is not started yet."""
    namespace = f"lives-{gang}-{uuid4().hex[:6]}"
    await make_namespace(api, name=namespace)
    kubelet = Kubelet(api, namespace)
    stage = Stage(api, namespace, kubelet)
    operator = OperatorProcess(
        kubeconfig=kubeconfig or plane.operator_kubeconfig,
        log=folder / f"operator-{namespace}.log",
        flags=("--namespace", namespace, f"--gang-scheduler={gang}"),
        env={},
    )
    tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(stage.remember())]
    try:
        yield stage, operator
    finally:
        await operator.kill()
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await api.delete(NAMESPACES, namespace)
        for error in done:
            if isinstance(error, Exception):
                raise error

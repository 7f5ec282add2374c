"""A kubelet and a gang scheduler for one namespace, played by the test: Pods run and end as their fates say."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import aiohttp
from tests.integration.harness.api import (
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Api,
    Object,
    Refused,
    Resource,
    WatchEvent,
)

__all__ = ("FOREVER", "PENDING", "Fate", "Kubelet", "fails", "follow", "succeeds")

NODE: Final = "lives"
GRACE_S: Final = 0.4  # from the deletion of a running Pod to its end
STARTUP_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a Pod."""

    starts: bool = True
    after_s: float = 0.0  # running for so long
    codes: Mapping[str, int] = field(default_factory=dict)  # container -> exit code; none: it runs for ever
    restarts: int = 0  # of its containers, told while it runs
    first_run_only: bool = False  # later runs of the Job run for ever

    @property
    def phase(self) -> str:
        return "Failed" if any(self.codes.values()) else "Succeeded"


FOREVER: Final = Fate()
PENDING: Final = Fate(starts=False)


def fails(code: int = 1, *, after_s: float = 0.3, first_run_only: bool = False) -> Fate:
    return Fate(after_s=after_s, codes={"main": code}, first_run_only=first_run_only)


def succeeds(*, after_s: float = 0.3) -> Fate:
    return Fate(after_s=after_s, codes={"main": 0})


async def follow(api: Api, resource: Resource, namespace: str) -> AsyncIterator[WatchEvent]:
    """Yield what happens, for ever; a server that has just started asks for patience."""
    while True:
        try:
            async for event in api.watch(resource, namespace):
                yield event
        except aiohttp.ClientResponseError as error:
            if error.status != 429:
                raise
            await asyncio.sleep(0.2)


class Kubelet:
    """Plays the Pods of a namespace; `run` in a task of its own."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.fates: dict[tuple[str, str], Fate] = {}  # (job, task) -> fate; FOREVER when not named
        self.groups: dict[str, str] = {}  # job -> phase of its group; Inqueue when not named
        self._api = api
        self._namespace = namespace
        self._seen: set[str] = set()
        self._ending: set[str] = set()

    async def run(self) -> None:
        """Play until cancelled."""
        await self._prepare()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._play_pods(group))
            group.create_task(self._play_groups())

    async def _prepare(self) -> None:
        # A Pod of a node that does not exist would soon be collected; and nothing else must be scheduled here.
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}
        queue = {"apiVersion": QUEUES.version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
        for resource, body in ((NODES, node), (QUEUES, queue)):
            try:
                await self._api.create(resource, body)
            except Refused as refused:
                if refused.code != 409:
                    raise

    async def _play_pods(self, group: asyncio.TaskGroup) -> None:
        async for event in follow(self._api, PODS, self._namespace):
            pod, meta = event.object, event.object["metadata"]
            if event.type == "DELETED":
                continue
            if meta.get("deletionTimestamp"):
                if meta["uid"] not in self._ending:
                    self._ending.add(meta["uid"])
                    group.create_task(self._end(pod))
            elif meta["uid"] not in self._seen:
                self._seen.add(meta["uid"])
                group.create_task(self._live(pod))

    async def _live(self, pod: Object) -> None:
        labels = pod["metadata"]["labels"]
        fate = self.fates.get((labels["volcano.sh/job-name"], labels["volcano.sh/task-spec"]), FOREVER)
        if not fate.starts:
            return
        if fate.first_run_only and pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] != "0":
            fate = FOREVER
        try:
            await asyncio.sleep(STARTUP_S)
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            }
            path = PODS.path(self._namespace, name=pod["metadata"]["name"], subresource="binding")
            await self._api.call("POST", path, body=binding)
            await self._tell(pod, "Running", fate)
            if fate.codes:
                await self._job_runs(labels["volcano.sh/job-name"])
                await asyncio.sleep(fate.after_s)
                await self._tell(pod, fate.phase, fate)
        except Refused as refused:
            if refused.code not in (404, 409):  # the operator was quicker
                raise

    async def _job_runs(self, name: str) -> None:
        """Wait for the phase Running, which every watcher wants to see before a Pod ends."""
        while True:
            job = await self._api.get(JOBS, name, self._namespace)
            if job.get("status", {}).get("state", {}).get("phase") != "Pending":
                return
            await asyncio.sleep(0.1)

    async def _end(self, pod: Object) -> None:
        await asyncio.sleep(GRACE_S)
        try:
            # With its UID, for a successor may have its name by now.
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            path = PODS.path(self._namespace, name=pod["metadata"]["name"])
            await self._api.call("DELETE", path, body={"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except Refused as refused:
            if refused.code not in (404, 409):
                raise

    async def _tell(self, pod: Object, phase: str, fate: Fate) -> None:
        runs = phase == "Running"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        containers = [c["name"] for c in pod["spec"]["containers"]]
        codes = {name: fate.codes.get(name, fate.codes.get("main", 0)) for name in containers}
        statuses = [
            {
                "name": name,
                "image": "i",
                "imageID": "",
                "ready": runs,
                "restartCount": fate.restarts,
                "state": {"running": {"startedAt": now}}
                if runs
                else {"running": None, "terminated": {"exitCode": codes[name], "finishedAt": now}},
            }
            for name in containers
        ]
        body = {
            "metadata": {"uid": pod["metadata"]["uid"]},  # a successor may have its name by now
            "status": {"phase": phase, "containerStatuses": statuses},
        }
        await self._api.patch(PODS, pod["metadata"]["name"], body, self._namespace, subresource="status")

    async def _play_groups(self) -> None:
        async for event in follow(self._api, POD_GROUPS, self._namespace):
            group = event.object
            owner = group["metadata"]["ownerReferences"][0]["name"]
            phase = self.groups.get(owner, "Inqueue")
            if event.type == "ADDED" and phase:
                await self.move_group(group, phase)

    async def move_group(self, group: Object, phase: str, *, unschedulable: str = "") -> None:
        """Put a group into a phase, as a gang scheduler does; its status is no subresource."""
        status: Object = {"phase": phase}
        if unschedulable:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            condition = {"type": "Unschedulable", "status": "True", "transitionID": "1", "lastTransitionTime": now}
            status["conditions"] = [{**condition, "reason": "NotEnoughResources", "message": unschedulable}]
        try:
            await self._api.patch(POD_GROUPS, group["metadata"]["name"], {"status": status}, self._namespace)
        except Refused as refused:
            if refused.code != 404:
                raise

"""A small set of lives that every fault meets: what a user does, what the Pods do, and how each must end.

Each life has a Job of its own, asks the API server directly, and returns once its Job has ended as it does when nothing
goes wrong. `PODS` is how many Pods all lives together make; one more is one doubled, one less cannot be.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from tests.integration.harness.api import COMMANDS, JOBS, Api, Object, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import ask, in_phase, job, play, pods_of, task

__all__ = ("PODS", "created_pods", "live", "new_pods")

PODS: Final = 3 + 6 + 5 + 6 + 4
OPERATOR: Final = "system:serviceaccount:vcjob-system:vcjob-operator"
PATIENCE_S: Final = 90.0  # under faults everything is slower; nothing depends on how much


async def live(api: Api, namespace: str) -> None:
    """Live all lives side by side; raises AssertionError for one that does not end as it must."""
    async with asyncio.TaskGroup() as group:
        for life in (completes, restarts_whole, restarts_a_task, obeys_commands, is_scaled):
            group.create_task(life(api, namespace), name=life.__name__)


async def completes(api: Api, namespace: str) -> None:
    """Three Pods run and succeed: Completed, without a retry."""
    await api.create(JOBS, job("completes", task("w", 3), plugins={"svc": [], "env": []}), namespace)
    await ends(api, "completes", namespace, pods=await new_pods(api, "completes", namespace, count=3), retries=0)


async def restarts_whole(api: Api, namespace: str) -> None:
    """A Pod fails twice and PodFailed restarts the Job: two retries, neither more nor less."""
    policy = {"event": "PodFailed", "action": "RestartJob"}
    await api.create(JOBS, job("restarts", task("w", 2), policies=[policy], maxRetry=5), namespace)
    old: set[str] = set()
    for _ in range(2):
        pods = await new_pods(api, "restarts", namespace, count=2, besides=old)
        old |= uids(pods)
        await play(api, pods, "Running")
        await in_phase(api, "restarts", namespace, "Running", timeout_s=PATIENCE_S)
        await play(api, pods[:1], "Failed")
    pods = await new_pods(api, "restarts", namespace, count=2, besides=old)
    await ends(api, "restarts", namespace, pods=pods, retries=2)


async def restarts_a_task(api: Api, namespace: str) -> None:
    """A Pod of one task fails and RestartTask makes that task's Pods anew: one retry, the other task's Pod stays."""
    policy = {"event": "PodFailed", "action": "RestartTask"}
    tasks = (task("keep", 1), task("redo", 2, policies=[policy]))
    await api.create(JOBS, job("task", *tasks), namespace)
    pods = await new_pods(api, "task", namespace, count=3)
    await play(api, pods, "Running")
    await in_phase(api, "task", namespace, "Running", timeout_s=PATIENCE_S)
    kept, redone = [p for p in pods if "keep" in name(p)], [p for p in pods if "redo" in name(p)]
    await play(api, redone[:1], "Failed")
    renewed = await new_pods(api, "task", namespace, count=2, besides=uids(pods))
    assert {name(p) for p in renewed} == {name(p) for p in redone}
    assert uids(kept) <= uids((await pods_of(api, "task", namespace)).values())
    await ends(api, "task", namespace, pods=[*kept, *renewed], retries=1)


async def obeys_commands(api: Api, namespace: str) -> None:
    """Commands abort, resume and restart the Job: each is carried out once, and only the restart costs a retry."""
    await api.create(JOBS, job("commanded", task("w", 2)), namespace)
    old: set[str] = set()
    for action in ("AbortJob", "RestartJob"):
        pods = await new_pods(api, "commanded", namespace, count=2, besides=old)
        old |= uids(pods)
        await play(api, pods, "Running")
        await in_phase(api, "commanded", namespace, "Running", timeout_s=PATIENCE_S)
        await ask(api, action, "commanded", namespace)
        if action == "AbortJob":
            await in_phase(api, "commanded", namespace, "Aborted", timeout_s=PATIENCE_S)
            assert not await pods_of(api, "commanded", namespace)
            await ask(api, "ResumeJob", "commanded", namespace)
    pods = await new_pods(api, "commanded", namespace, count=2, besides=old)
    await ends(api, "commanded", namespace, pods=pods, retries=1)
    assert not await api.list(COMMANDS, namespace)


async def is_scaled(api: Api, namespace: str) -> None:
    """A running Job grows from two Pods to four and shrinks to one: the Pods that stay are the same throughout."""
    await api.create(JOBS, job("scaled", task("w", 2), minAvailable=1), namespace)
    first = await new_pods(api, "scaled", namespace, count=2)
    await play(api, first, "Running")
    await in_phase(api, "scaled", namespace, "Running", timeout_s=PATIENCE_S)
    await scale(api, "scaled", namespace, to=4)
    await play(api, await new_pods(api, "scaled", namespace, count=2, besides=uids(first)), "Running")
    await scale(api, "scaled", namespace, to=1)

    async def only_the_first() -> list[Object]:
        found = await pods_of(api, "scaled", namespace)
        assert list(found) == ["scaled-w-0"]
        return list(found.values())

    left = await eventually(only_the_first, timeout_s=PATIENCE_S)
    assert uids(left) <= uids(first)
    await ends(api, "scaled", namespace, pods=left, retries=0)


async def ends(api: Api, job_name: str, namespace: str, *, pods: list[Object], retries: int) -> None:
    """Let the Pods run and succeed; the Job must come to Completed with this number of retries and these Pods."""
    await play(api, pods, "Running")
    await in_phase(api, job_name, namespace, "Running", timeout_s=PATIENCE_S)
    await play(api, pods, "Succeeded")
    ended = await in_phase(api, job_name, namespace, "Completed", timeout_s=PATIENCE_S)
    assert ended["status"].get("retryCount", 0) == retries
    assert ended["status"]["succeeded"] == len(pods)
    assert uids((await pods_of(api, job_name, namespace)).values()) == uids(pods)


async def new_pods(api: Api, job_name: str, namespace: str, *, count: int, besides: Iterable[str] = ()) -> list[Object]:
    """Return the Job's Pods that have none of these UIDs, by name, once there are `count` of them."""
    old = set(besides)

    async def look() -> list[Object]:
        found = (await pods_of(api, job_name, namespace)).values()
        new = sorted((p for p in found if p["metadata"]["uid"] not in old), key=name)
        assert len(new) == count, f"{len(new)} new Pods of {count}"
        return new

    return await eventually(look, timeout_s=PATIENCE_S, what=f"{count} new Pods of Job {job_name}")


async def scale(api: Api, job_name: str, namespace: str, *, to: int) -> None:
    """Change the replicas of the Job's first task."""
    change = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": to}]
    await api.patch(JOBS, job_name, change, namespace, kind="json")


def name(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def uids(pods: Iterable[Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def created_pods(plane: ControlPlane, mark: int, namespace: str) -> int:
    """Return how many Pods the operator has made in a namespace, as the server's audit log tells."""
    calls = plane.audit.calls(since=mark, user=OPERATOR, verbs=frozenset({"create"}), resource="pods")
    return sum(call.namespace == namespace and call.code == 201 for call in calls)

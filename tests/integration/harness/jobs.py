"""Jobs as the tests write them, and their Pods as a kubelet would play them.

await api.create(JOBS, job("j", task("w", 2), plugins={"svc": []}), namespace)
await play(api, await pods_when(api, "j", namespace, count=2), "Running")
await in_phase(api, "j", namespace, "Running")
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.integration.harness.api import COMMANDS, EVENTS, JOBS, PODS, Api, Object, Refused, eventually

__all__ = (
    "ask",
    "env_of",
    "events_of",
    "in_phase",
    "job",
    "play",
    "pods_of",
    "pods_when",
    "run_to",
    "state_when",
    "task",
)

IMAGE = "busybox:1.36"


def task(
    name: str, replicas: int = 1, *, containers: Iterable[Object] = (), pod: Object | None = None, **fields: Any
) -> Object:
    """A task with one container `main`; `pod` are fields of its Pod spec, keywords are fields of the task."""
    spec: Object = {
        "restartPolicy": "Never",
        "containers": list(containers) or [{"name": "main", "image": IMAGE}],
        **(pod or {}),
    }
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}


def job(name: str, *tasks: Object, **spec: Any) -> Object:
    """A Job; keywords are fields of its spec."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": list(tasks), **spec},
    }


async def pods_of(api: Api, name: str, namespace: str) -> dict[str, Object]:
    """Return a Job's Pods by name."""
    found = await api.list(PODS, namespace, labels=f"volcano.sh/job-name={name}")
    return {pod["metadata"]["name"]: pod for pod in found}


async def pods_when(api: Api, name: str, namespace: str, *, count: int, timeout_s: float = 30.0) -> dict[str, Object]:
    """Return a Job's Pods once there are `count` of them."""

    async def look() -> dict[str, Object] | None:
        found = await pods_of(api, name, namespace)
        assert len(found) == count, f"{len(found)} Pods of {count}"
        return found or {"": {}} if count == 0 else found

    return await eventually(look, timeout_s=timeout_s, what=f"{count} Pods of Job {name}")


async def state_when(api: Api, name: str, namespace: str, *, timeout_s: float = 30.0, **state: str) -> Object:
    """Return a Job once the named fields of `status.state` have these values."""

    async def look() -> Object:
        found = await api.get(JOBS, name, namespace)
        have = found.get("status", {}).get("state", {})
        assert {key: have.get(key) for key in state} == state, f"status.state is {have}"
        return found

    return await eventually(look, timeout_s=timeout_s, what=f"Job {name} in {state}")


async def in_phase(api: Api, name: str, namespace: str, phase: str, *, timeout_s: float = 30.0) -> Object:
    """Return a Job once it is in the phase."""
    return await state_when(api, name, namespace, timeout_s=timeout_s, phase=phase)


async def play(api: Api, pods: Iterable[Object], phase: str, *, exit_code: int | None = None) -> None:
    """Put Pods into a phase as a kubelet would report it."""
    await asyncio.gather(*(_play(api, pod, phase, exit_code) for pod in pods))


async def run_to(api: Api, name: str, namespace: str, phase: str, *, count: int) -> None:
    """Wait for a Job's Pods, let them run, and let them end in `phase`."""
    pods = (await pods_when(api, name, namespace, count=count)).values()
    await play(api, pods, "Running")
    await in_phase(api, name, namespace, "Running")
    await play(api, pods, phase)


async def ask(api: Api, action: str, name: str, namespace: str, *, uid: str = "") -> str:
    """Ask for an action on a Job, as `vcctl` does, or on one of another `uid`; return the Command's name."""
    uid = uid or (await api.get(JOBS, name, namespace))["metadata"]["uid"]
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{name}-{action.lower()}-"},
        "action": action,
        "target": {"apiVersion": JOBS.version, "kind": "Job", "name": name, "uid": uid, "controller": True},
    }
    return str((await api.create(COMMANDS, command, namespace))["metadata"]["name"])


async def events_of(api: Api, name: str, namespace: str, *, kind: str = "Job", reason: str = "") -> list[Object]:
    """Return the Events about an object."""
    fields = f"involvedObject.kind={kind},involvedObject.name={name}" + (f",reason={reason}" if reason else "")
    return await api.list(EVENTS, namespace, fields=fields)


def env_of(pod: Object, *, container: int = 0, init: bool = False) -> dict[str, str]:
    """Return the literal variables of a container; references are shown as KIND/NAME/KEY."""
    containers = pod["spec"]["initContainers" if init else "containers"]
    return {entry["name"]: _value(entry) for entry in containers[container].get("env", ())}


def _value(entry: Object) -> str:
    if "valueFrom" not in entry:
        return str(entry.get("value", ""))
    (kind, reference), *_ = entry["valueFrom"].items()
    return f"{kind}/{reference.get('name')}/{reference.get('key')}"


async def _play(api: Api, pod: Object, phase: str, exit_code: int | None) -> None:
    code = exit_code if exit_code is not None else int(phase == "Failed")
    running = phase == "Running"
    state = {"running": {}, "terminated": None} if running else {"running": None, "terminated": {"exitCode": code}}
    statuses = [
        {"name": c["name"], "image": c["image"], "imageID": "", "restartCount": 0, "ready": running, "state": state}
        for c in pod["spec"]["containers"]
    ]
    if phase == "Pending":
        status: Object = {"phase": phase, "containerStatuses": None}
    else:
        condition = {"type": "Ready", "status": "True" if running else "False"}
        status = {"phase": phase, "conditions": [condition], "containerStatuses": statuses}
    try:
        await api.set_status(PODS, pod["metadata"]["name"], status, pod["metadata"]["namespace"])
    except Refused as refused:
        if refused.code != 404:  # the operator may have been quicker
            raise

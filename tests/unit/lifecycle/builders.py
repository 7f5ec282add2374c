"""Builders for the tests of the lifecycle: a snapshot that is valid by default and changes by copy.

    job().task("w", 2).policy("PodFailed", "RestartJob").running().pod(failed("w", 0), running("w", 1)).make()

Extend the builder, never fill the values by hand.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import msgspec

from vcjob.admission.defaulting import default_job
from vcjob.api.job import Phase
from vcjob.gang.base import Gang, Group, GroupWish
from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang
from vcjob.lifecycle.members import mark_key
from vcjob.lifecycle.outcome import Plan
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.pod import FAILED, PENDING, RUNNING, SUCCEEDED, UNKNOWN, Exit, Pod
from vcjob.lifecycle.revision import compile_job
from vcjob.lifecycle.snapshot import Command, Hold, Memory, Snapshot
from vcjob.lifecycle.status import Status
from vcjob.lifecycle.steps import CreatePods, DeletePods, Step

__all__ = (
    "BEFORE", "NOW", "UID", "SnapshotBuilder", "created", "deleted", "exits", "failed", "job", "pending", "pod",
    "running", "steps", "succeeded", "terminating", "unknown",
)  # fmt: skip

NOW = 1_900_000_000.0
BEFORE = NOW - 100.0  # when the Job, its phase and its Pods began
UID = "uid-1"


def pod(task: str, index: int, phase: str = PENDING, **fields: Any) -> Pod:
    """Return a Pod of the Job's present run."""
    made = {"created": BEFORE, "version": 1, "owner_uid": UID, "uid": f"{task}-{index}-{fields.get('job_version', 0)}"}
    return Pod(
        namespace="ns", name=f"j-{task}-{index}", job="j", task=task, index=index, phase=phase, **{**made, **fields}
    )


def pending(task: str, index: int, **fields: Any) -> Pod:
    return pod(task, index, PENDING, **fields)


def running(task: str, index: int, **fields: Any) -> Pod:
    """Return a running Pod whose containers are all ready."""
    return pod(task, index, RUNNING, **{"ready": True, **fields})


def succeeded(task: str, index: int, **fields: Any) -> Pod:
    return pod(task, index, SUCCEEDED, **{"since": BEFORE, **fields})


def failed(task: str, index: int, code: int = 1, **fields: Any) -> Pod:
    """Return a Pod whose container `main` ended with `code`."""
    return pod(task, index, FAILED, **{"since": BEFORE, "exits": exits(main=code), **fields})


def unknown(task: str, index: int, **fields: Any) -> Pod:
    return pod(task, index, UNKNOWN, **fields)


def terminating(task: str, index: int, **fields: Any) -> Pod:
    """Return a running Pod that somebody deletes."""
    return running(task, index, **{"deleted": NOW - 1, **fields})


def exits(**codes: int) -> tuple[Exit, ...]:
    """Return ended containers by name; a name that begins with `init` is an init container."""
    return tuple(Exit(container=name, code=code, init=name.startswith("init")) for name, code in codes.items())


class SnapshotBuilder:
    """Collects the parts of a snapshot; every method returns a changed copy."""

    def __init__(self) -> None:
        self.raw: dict[str, Any] = {
            "metadata": {"name": "j", "namespace": "ns", "uid": UID, "generation": 1},
            "spec": {"tasks": [], "policies": []},
        }
        self._status = Status()
        self._pods: dict[str, Pod] = {}
        self._gang: Gang = NoGang(gang_scheduler_name="volcano")
        self._group: Group | None = None
        self._memory = Memory(fresh=False)
        self._fields: dict[str, Any] = {}

    # The Job

    def task(self, name: str, replicas: int, **fields: Any) -> Self:
        """Add a task; keywords are fields of the task, `pod=` the fields of its Pod spec."""
        new = self._copy()
        spec = {"containers": [{"name": "main", "image": "busybox:1.36"}], **fields.pop("pod", {})}
        new.raw["spec"]["tasks"].append({"name": name, "replicas": replicas, "template": {"spec": spec}, **fields})
        return new

    def policy(self, event: str, action: str, *, timeout: str = "", task: str = "", **fields: Any) -> Self:
        """Add a policy to the Job, or to one of its tasks; `event` "" when an exit code is given."""
        new = self._copy()
        entry = {"action": action, **fields} | ({"event": event} if event else {})
        if timeout:
            entry["timeout"] = timeout
        owner = next(t for t in new.raw["spec"]["tasks"] if t["name"] == task) if task else new.raw["spec"]
        owner.setdefault("policies", []).append(entry)
        return new

    def spec(self, **fields: Any) -> Self:
        new = self._copy()
        new.raw["spec"] |= fields
        return new

    def scale(self, task: str, replicas: int, *, minimum: int | None = None) -> Self:
        """Edit the replicas of a task, as a user does while the Job lives, and the Job's minimum with it."""
        new = self._copy()
        new.raw = default_job(new.raw)
        for entry in new.raw["spec"]["tasks"]:
            if entry["name"] == task:
                entry["replicas"] = entry["minAvailable"] = replicas
        total = sum(entry["replicas"] for entry in new.raw["spec"]["tasks"])
        new.raw["spec"]["minAvailable"] = total if minimum is None else minimum
        new.raw["metadata"]["generation"] += 1
        return new

    def annotated(self, **annotations: str) -> Self:
        """Annotate the Job; `__` in a name stands for a slash and `_` for a hyphen."""
        new = self._copy()
        named = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
        new.raw["metadata"].setdefault("annotations", {}).update(named)
        return new

    def plugin(self, name: str, *arguments: str) -> Self:
        new = self._copy()
        new.raw["spec"].setdefault("plugins", {})[name] = list(arguments)
        return new

    # Its status

    def phase(self, phase: Phase | str, **fields: Any) -> Self:
        """Put the Job into a phase; keywords are fields of the status."""
        new = self._copy()
        given = {"reason": "Given", "message": "as the test has it", "last_transition": BEFORE, **fields}
        new._status = replace(new._status, phase=Phase(phase), **given)
        return new

    def pending(self, **fields: Any) -> Self:
        return self.phase(Phase.PENDING, **fields)

    def running(self, **fields: Any) -> Self:
        return self.phase(Phase.RUNNING, **fields)

    def restarting(self, record: str = "job", **fields: Any) -> Self:
        """Put the Job into a restart with this record of its scope."""
        new = self.phase(Phase.RESTARTING, **fields)
        new._status = replace(new._status, controlled={**new._status.controlled, "restart": record})
        return new

    def marked(self, *plugins: str) -> Self:
        """Have the status say that the plugins' objects have been made."""
        new = self._copy()
        marks = {mark_key(name): name for name in plugins}
        new._status = replace(new._status, controlled={**new._status.controlled, **marks})
        return new

    def counted(self, **tasks: Mapping[str, int]) -> Self:
        """Have the status tell of Pods by task and phase."""
        new = self._copy()
        new._status = replace(new._status, task_counts=tasks)
        return new

    def after(self, made: Plan) -> Self:
        """Take the status that a plan came to."""
        assert made.status is not None
        new = self._copy()
        new._status = Status.read(made.status.write())
        return new

    # What is around it

    def pod(self, *pods: Pod) -> Self:
        new = self._copy()
        new._pods |= {p.name: p for p in pods}
        return new

    def no_pods(self) -> Self:
        new = self._copy()
        new._pods = {}
        return new

    def volcano(self, phase: str | None = "Inqueue", **fields: Any) -> Self:
        """Use the gang back end `volcano`; `phase` is that of the group, None when there is no group.

        The group is as the Job wants it at the end of the chain, unless fields say otherwise.
        """
        new = self._copy()
        new._gang = VolcanoGang()
        new._fields["_group"] = None if phase is None else {"phase": phase, **fields}
        return new

    def volcano_as_is(self, group: Group | None) -> Self:
        """Use the gang back end `volcano` with this very group."""
        new = self._copy()
        new._gang, new._group = VolcanoGang(), group
        new._fields.pop("_group", None)
        new._fields.pop("group", None)
        return new

    def hold(self, reason: str = "QuotaExceeded", *, seconds: float = 10.0, **fields: Any) -> Self:
        return self.memory(hold=Hold(until=NOW + seconds, reason=reason, message="it was refused", **fields))

    def memory(self, **fields: Any) -> Self:
        new = self._copy()
        new._memory = replace(new._memory, **fields)
        return new

    def removed(self, *pods: Pod) -> Self:
        """Have the process remember that these Pods vanished a second ago."""
        return self.memory(removed={p.name: (p, NOW - 1) for p in pods})

    def command(self, action: str, **fields: Any) -> Self:
        new = self._copy()
        new._fields["command"] = Command(action=action, name="c", **fields)
        return new

    def given(self, **fields: Any) -> Self:
        """Set other fields of the snapshot."""
        new = self._copy()
        new._fields |= fields
        return new

    def at(self, seconds: float) -> Self:
        """Look so many seconds later."""
        return self.given(now=NOW + seconds)

    # Results

    def make(self) -> Snapshot:
        revision = compile_job(self.raw)
        fields = {"now": NOW, "created": BEFORE, **self._fields}
        wanted = fields.pop("_group", None)
        group = self._group
        if wanted is not None:
            group = self._wanted_group(wanted)
        status = self._status
        if status.phase is not None and not status.min_available:
            status = replace(status, min_available=revision.min_available)
        return Snapshot(
            revision=revision,
            status=status,
            pods=self._pods,
            gang=self._gang,
            group=group,
            memory=self._memory,
            **fields,
        )

    def plan(self) -> Plan:
        """Plan one pass."""
        return plan(self.make())

    def settle(self, rounds: int = 8) -> Plan:
        """Plan again and again, taking over each status, without carrying out a step; return the last plan."""
        builder, made = self, self.plan()
        for _ in range(rounds):
            if made.status is None or made.status == builder.make().status:
                break
            builder = builder.after(made)
            builder._fields.pop("command", None)
            made = builder.plan()
        return made

    def _wanted_group(self, fields: Mapping[str, Any]) -> Group:
        job = compile_job(self.raw).job
        manifest = self._gang.wanted_group(job, GroupWish(job_version=self._status.version))
        assert manifest is not None
        given = {"uid": "group-1", "owner_uid": UID, "owner_name": "j", "job_version": self._status.version, **fields}
        spec = manifest["spec"] | given.pop("spec", {})
        return Group(namespace="ns", name=manifest["metadata"]["name"], spec=spec, **given)

    def _copy(self) -> Self:
        new = copy.copy(self)
        new.raw = copy.deepcopy(self.raw)
        new._pods = dict(self._pods)
        new._fields = dict(self._fields)
        return new


def job() -> SnapshotBuilder:
    """Begin a Job `j`."""
    return SnapshotBuilder()


def steps(made: Plan) -> tuple[Step, ...]:
    """Return the steps of all stages."""
    return tuple(step for stage in made.stages for step in stage)


def created(made: Plan) -> list[str]:
    """Return the Pods that a plan makes, as `task-index`."""
    return [f"{m.task}-{m.index}" for step in steps(made) if isinstance(step, CreatePods) for m in step.members]


def deleted(made: Plan) -> list[str]:
    """Return the Pods that a plan deletes, in the order of the step, as `task-index`; marked ones with a star."""
    return [
        f"{p.task}-{p.index}{'*' if step.mark else ''}"
        for step in steps(made)
        if isinstance(step, DeletePods)
        for p in step.pods
    ]


def with_fields(item: Pod, **fields: Any) -> Pod:
    """Return a changed copy of a Pod."""
    return msgspec.structs.replace(item, **fields)

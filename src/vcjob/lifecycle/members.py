"""A Job that is to run: make what is missing, remove what is too much, and say what is awaited. Pure.

The order is a promise: names of claims are recorded before claims are made, plugin objects and claims are there before
the first Pod, and Pods come only when the gang back end lets them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from vcjob.api.job import Event, Phase
from vcjob.api.names import ANNOTATION_JOB_FORWARDING
from vcjob.gang.base import GroupWish

from .census import Census, Member, after_kill
from .counters import Counters
from .dependencies import count_ready, find_unready
from .ending import Ending, decide_ending
from .outcome import EventNote, Plan, Write, earliest, with_counters
from .pod import FAILED, PENDING, Pod
from .policies import Verdict
from .revision import PluginObject
from .snapshot import Snapshot
from .status import Status
from .steps import (
    AnnotateJob,
    ApplyObject,
    CheckClaim,
    CreateClaim,
    CreateGroup,
    CreatePods,
    DeleteGroup,
    DeletePods,
    PatchGroup,
    PatchJob,
    Stage,
    Step,
)
from .volumes import claim_name

__all__ = ("Wait", "decide_phase", "mark_key", "plan_members")

_TRUST_S: Final = 60.0  # how long a plugin's object that was seen is taken to be there
_SHOWN: Final = 5  # of the tasks that wait, and of those that each waits for
_SWEPT_S: Final = 15.0  # who deletes all that a Job has is through by then, whatever comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What the Job waits for."""

    reason: str
    message: str
    event: str = ""  # the Warning event that tells of it; none when empty


def mark_key(plugin: str) -> str:
    """Return the key in `status.controlledResources` that says a plugin's objects have been made."""
    return f"plugin-{plugin}"


def plan_members(snapshot: Snapshot, census: Census, verdict: Verdict) -> Plan:
    """Plan a pass over a Job in Pending or Running."""
    if snapshot.revision.fatal:
        return _plan_invalid(snapshot, census)
    hold = snapshot.hold
    blocked = Wait(reason=hold.reason, message=hold.message) if hold else _find_obstacle(snapshot, census)
    waiting = _unready_tasks(snapshot, census)
    admitted = snapshot.gang.admits(snapshot.group) and not snapshot.group_is_old
    creations = _creations(snapshot, census, verdict, waiting) if admitted and not blocked else None
    prerequisites = () if blocked else _prerequisites(snapshot, creations, startable=_startable(snapshot, waiting))
    wait = blocked or (None if admitted else _group_wait(snapshot)) or _dependency_wait(waiting)
    events = tuple(_wait_events(wait))
    second_looks = () if blocked else (_second_look(snapshot, item) for item in snapshot.revision.objects)
    wake = earliest(hold.until if hold else None, *second_looks)
    status = _with_marks(snapshot, prerequisites)
    first = snapshot.status.phase is None
    if prerequisites and (first or isinstance(prerequisites[0], PatchJob | AnnotateJob)):
        # Either the Job changes, and everything else follows from the next revision; or it is new, and its first status
        # says Pending and what has been made.
        return Plan(status=with_counters(status, census.counters), stages=(prerequisites,), events=events, wake=wake)
    removals = tuple(_removals(snapshot, census)) if admitted and not (hold and hold.deletion) else ()
    stages = tuple(stage for stage in (prerequisites, (*removals, *((creations,) if creations else ()))) if stage)
    leaving = (pod for step in removals for pod in step.pods)
    status = with_counters(status, after_kill(census, leaving) if removals else census.counters)
    status = decide_phase(snapshot, status, census.member_counters, wait=wait, pods=census.members)
    # Pods that we remove are out of the counters before they are gone: a process that finds fewer than were counted has
    # to take it for evictions.
    write = Write.FIRST if removals else Write.EARLY if first and stages else Write.REPLAN
    return Plan(status=status, stages=stages, write=write, events=events, wake=wake)


def _wait_events(wait: Wait | None) -> Iterator[EventNote]:
    if wait and wait.event:
        yield EventNote(type="Warning", reason=wait.reason, message=wait.event, standing=True)


def _plan_invalid(snapshot: Snapshot, census: Census) -> Plan:
    """Plan a pass over a Job whose spec has become impossible while its Pods live: nothing is made, none is taken."""
    status = with_counters(snapshot.status, census.counters)
    message = snapshot.revision.fatal
    event = EventNote(type="Warning", reason="InvalidSpec", message=message, standing=True)
    return Plan(
        status=status.enter(snapshot.phase, reason="InvalidSpec", message=message, now=snapshot.now), events=(event,)
    )


def decide_phase(
    snapshot: Snapshot, status: Status, counters: Counters, *, wait: Wait | None, pods: tuple[Pod, ...]
) -> Status:
    """Return the status in the phase that the counters call for, with its reason and message."""
    minimum, total = snapshot.revision.min_available, snapshot.revision.job.spec.total_replicas
    started = counters.running + counters.succeeded + counters.failed
    now = snapshot.now
    if snapshot.phase is Phase.PENDING and (started < minimum or snapshot.status.phase is None):
        reason, message = _pending_text(counters, minimum=minimum, total=total, pods=pods)
        return status.enter(
            Phase.PENDING, reason=wait.reason if wait else reason, message=wait.message if wait else message, now=now
        )
    if snapshot.phase is Phase.RUNNING and (
        ending := decide_ending(snapshot.revision.job.spec, counters, min_available=minimum)
    ):
        return _enter_ending(status, ending, pods=pods, now=now)
    message = f"{counters.running} of {total} Pods run, {counters.succeeded} succeeded, {counters.failed} failed"
    if wait:
        return status.enter(Phase.RUNNING, reason=wait.reason, message=f"{message}; {wait.message}", now=now)
    return status.enter(Phase.RUNNING, reason="PodsRunning", message=message, now=now)


def _enter_ending(status: Status, ending: Ending, *, pods: tuple[Pod, ...], now: float) -> Status:
    message = ending.message
    if ending.phase is Phase.FAILED and (failed := [pod for pod in pods if pod.phase == FAILED]):
        # Of many, the first to fail is the one to look at; the others often fail because of it.
        first = min(failed, key=lambda pod: (pod.since if pod.since is not None else now, pod.task, pod.index))
        message = f"{message}; pod {first.name} {first.describe_failure()}"
    return status.enter(ending.phase, reason=ending.reason, message=message, now=now)


def _pending_text(counters: Counters, *, minimum: int, total: int, pods: tuple[Pod, ...]) -> tuple[str, str]:
    started = counters.running + counters.succeeded + counters.failed
    message = f"{started} of {total} Pods have started, minAvailable is {minimum}"
    stuck = next((pod for pod in pods if pod.phase == PENDING and pod.detail and pod.deleted is None), None)
    if stuck:
        return "PodsPending", f"{message}; pod {stuck.name}: {stuck.detail}"
    if counters.terminating:
        return "PodsTerminating", f"{message}; {counters.terminating} Pods of an earlier run are still terminating"
    return "PodsPending", message


def _find_obstacle(snapshot: Snapshot, census: Census) -> Wait | None:
    """Return what keeps the Job from getting any further, if it is known without asking the API server."""
    job = snapshot.revision.job
    if snapshot.knows_queues and snapshot.queue is None and snapshot.phase is Phase.PENDING:
        message = f"queue {job.spec.queue!r} does not exist (spec.queue)"
        return Wait(reason="QueueNotFound", message=message, event=message)
    foreign = [pod for pod in census.strangers if not pod.owner_uid]
    if foreign:
        message = f"pod {foreign[0].name} exists and does not belong to this Job; delete or rename it"
        return Wait(reason="NameConflict", message=message, event=message)
    if census.strangers:
        return Wait(
            reason="OldPodsTerminating",
            message=f"pod {census.strangers[0].name} of an earlier Job of this name is not gone yet",
        )
    return None


def _prerequisites(snapshot: Snapshot, creations: CreatePods | None, *, startable: int | None) -> Stage:
    job = snapshot.revision.job
    unnamed = [i for i, volume in enumerate(job.spec.volumes) if not volume.volume_claim_name]
    if unnamed:
        patch = tuple(
            {"op": "add", "path": f"/spec/volumes/{i}/volumeClaimName", "value": claim_name(job, i)} for i in unnamed
        )
        return (PatchJob(patch=patch),)
    if _is_forwarded(snapshot) and job.metadata.annotations.get(ANNOTATION_JOB_FORWARDING) != "true":
        return (AnnotateJob(annotations={ANNOTATION_JOB_FORWARDING: "true"}),)
    # The group first: the scheduler has something to do with it while the rest is made.
    return (*_group_steps(snapshot, startable=startable), *_claim_steps(snapshot), *_object_steps(snapshot, creations))


def _is_forwarded(snapshot: Snapshot) -> bool:
    """Whether the queue may send the Job to other clusters; decided while the Job is Pending."""
    spec = (snapshot.queue or {}).get("spec") or {}
    return snapshot.phase is Phase.PENDING and bool(spec.get("extendClusters"))


def _claim_steps(snapshot: Snapshot) -> Iterator[Step]:
    done = snapshot.memory.claims
    for volume in snapshot.revision.job.spec.volumes:
        name = volume.volume_claim_name
        if name in done or f"volume-pvc-{name}" in snapshot.status.controlled:
            continue
        yield CreateClaim(name=name, spec=volume.volume_claim) if volume.volume_claim else CheckClaim(name=name)


def _object_steps(snapshot: Snapshot, creations: CreatePods | None) -> Iterator[Step]:
    for item in snapshot.revision.objects:
        due = _second_look(snapshot, item)
        late = due is not None and due <= snapshot.now
        if late or _needs_apply(snapshot, item) or (creations and _may_be_gone(snapshot, item)):
            yield ApplyObject(
                item=item, version=snapshot.status.version, expected=mark_key(item.plugin) in snapshot.status.controlled
            )


def _needs_apply(snapshot: Snapshot, item: PluginObject) -> bool:
    """Return whether the object may differ from what is wanted.

    What was written is remembered. A new process trusts the mark in the status, unless the spec has been edited or the
    Job restarted since; then it looks once.
    """
    ref = item.wanted.ref
    known = snapshot.memory.applied.get((ref.kind, ref.name))
    if known == item.digest_at(snapshot.status.version):
        return False
    marked = mark_key(item.plugin) in snapshot.status.controlled
    return known is not None or not marked or snapshot.revision.edited or snapshot.status.version > 0


def _may_be_gone(snapshot: Snapshot, item: PluginObject) -> bool:
    """Return whether somebody may have deleted the object since it was last seen: nobody watches it.

    Asked before Pods are made, because a Pod without it would never start. Who deletes a Pod may have deleted more.
    """
    seen = _seen(snapshot, item)
    return snapshot.now - seen > _TRUST_S or snapshot.memory.lost_at >= seen


def _second_look(snapshot: Snapshot, item: PluginObject) -> float | None:
    """Return when to look for the object once more after Pods have vanished; None when that has been done.

    `kubectl delete pod,svc,cm --all` takes the objects when the Pods are there again.
    """
    due = snapshot.memory.lost_at + _SWEPT_S
    return due if snapshot.memory.lost_at and _seen(snapshot, item) < due else None


def _seen(snapshot: Snapshot, item: PluginObject) -> float:
    """Return when the object was last known to be there."""
    return snapshot.memory.seen.get((item.wanted.ref.kind, item.wanted.ref.name), 0.0)


def _wish(snapshot: Snapshot, startable: int | None) -> GroupWish:
    return GroupWish(job_version=snapshot.status.version, startable=startable, priorities=snapshot.priorities)


def _group_steps(snapshot: Snapshot, *, startable: int | None) -> Iterator[Step]:
    if not snapshot.gang.uses_groups:
        return
    job, group = snapshot.revision.job, snapshot.group
    if group is None:
        if manifest := snapshot.gang.wanted_group(job, _wish(snapshot, startable)):
            yield CreateGroup(manifest=manifest)
    elif group.deleted:
        return
    elif snapshot.group_is_old:
        yield DeleteGroup(group=group)
    elif patch := snapshot.gang.changes(group, job, _wish(snapshot, startable)):
        yield PatchGroup(group=group, patch=patch)


def _group_wait(snapshot: Snapshot) -> Wait:
    group, name = snapshot.group, snapshot.gang.group_name(snapshot.revision.job)
    if group is None or group.deleted or snapshot.group_is_old:
        return Wait(reason="PodGroupPending", message=f"PodGroup {name} is being made")
    if group.condition:
        # The Event's words are Volcano's own, for those who search for them.
        condition, job = group.condition.lower(), snapshot.revision.job
        return Wait(
            reason="PodGroupPending",
            message=f"PodGroup {name} is {condition}: {group.message}",
            event=f"PodGroup {job.namespace}:{job.name} {condition}, reason: {group.message}",
        )
    return Wait(reason="PodGroupPending", message=f"PodGroup {name} is not admitted by the gang scheduler yet")


def _unready_tasks(snapshot: Snapshot, census: Census) -> Mapping[str, tuple[str, ...]]:
    """Return the tasks that still wait for others, with the names of those."""
    tasks = snapshot.revision.by_name
    # A task whose Pods have all been made has started: that it once waited is history.
    waiting = [tasks[name].task for name in census.missing if tasks[name].task.depends_on]
    if not waiting:
        return {}
    ready = count_ready(census.owned)
    unready = ((task.name, find_unready(task, tasks=tasks, ready=ready)) for task in waiting)
    return {name: names for name, names in unready if names}


def _dependency_wait(waiting: Mapping[str, tuple[str, ...]]) -> Wait | None:
    if not waiting:
        return None
    parts = [f"task {task} waits for {_some(names)} to be ready" for task, names in islice(waiting.items(), _SHOWN)]
    if more := len(waiting) - len(parts):
        parts.append(f"{more} more tasks wait" if more > 1 else "1 more task waits")
    return Wait(reason="WaitingForDependencies", message="; ".join(parts))


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _startable(snapshot: Snapshot, waiting: Mapping[str, tuple[str, ...]]) -> int | None:
    if not waiting:
        return None
    return sum(c.task.effective_min_available for c in snapshot.revision.tasks if c.task.name not in waiting)


def _removals(snapshot: Snapshot, census: Census) -> Iterator[DeletePods]:
    surplus = tuple(pod for pod in census.surplus if pod.deleted is None and not pod.ours)
    if surplus:
        yield DeletePods(pods=tuple(sorted(surplus, key=lambda pod: -pod.index)), mark=True)
    names = {pod.name for pod in surplus}
    stale = tuple(
        pod
        for pod in census.owned
        if pod.deleted is None
        and pod.name not in names
        and (pod.ours or (pod.job_version < snapshot.status.version and not pod.is_finished))
    )
    if stale:
        yield DeletePods(pods=stale, mark=False)


def _creations(
    snapshot: Snapshot, census: Census, verdict: Verdict, waiting: Mapping[str, tuple[str, ...]]
) -> CreatePods | None:
    evicted = {
        (p.cause.task, p.cause.index): p.cause.since for p in verdict.pending if p.cause.event is Event.POD_EVICTED
    }
    members = tuple(
        Member(task=task, index=index, evicted_at=evicted.get((task, index)))
        for task, indices in census.missing.items()
        if task not in waiting
        for index in indices
    )
    if not members:
        return None
    return CreatePods(members=members, version=snapshot.status.version, retry_count=snapshot.status.retry_count)


def _with_marks(snapshot: Snapshot, prerequisites: Stage) -> Status:
    """Return the status with the marks of everything that has been made."""
    status, revision = snapshot.status, snapshot.revision
    open_plugins = {step.item.plugin for step in prerequisites if isinstance(step, ApplyObject)}
    unmade = {item.plugin for item in revision.objects if _needs_apply(snapshot, item)} | open_plugins
    marks = {mark_key(name): name for name in revision.marks if name not in unmade}
    claims = {f"volume-pvc-{name}": name for name in snapshot.memory.claims}
    return replace(status, controlled={**status.controlled, **marks, **claims}, min_available=revision.min_available)

"""What happened to the Job that a policy may react to. Pure.

A cause is read from what is there now (a Pod in phase Failed, a group in phase Unknown), never from having seen it
happen, so it is found again after a restart of the operator and disappears with its reason. Causes that were acted upon
are fenced: a whole restart raises `status.version` above the Pod's, a targeted one marks the Pod and raises
`status.retryCount` above it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vcjob.api.job import Event, Phase

from .census import Census, take_census
from .pod import FAILED, PENDING, RUNNING, SUCCEEDED, Exit, Pod
from .restart import Restart
from .revision import CompiledTask
from .snapshot import Snapshot
from .status import Status

__all__ = ("Cause", "find_causes", "is_settled", "misses_pods", "shows_the_past")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that happened.

    `since` is when, in seconds since the epoch; None when no object tells. `key` names the cause across passes.
    """

    event: Event
    key: str
    message: str
    task: str = ""
    index: int = -1
    partition: str = ""
    exits: tuple[Exit, ...] = ()
    since: float | None = None


def find_causes(snapshot: Snapshot, census: Census) -> tuple[Cause, ...]:
    """Return every cause that a policy of the Job watches, the oldest first."""
    revision = snapshot.revision
    if not revision.watched and not revision.watches_exit_codes:
        return ()
    found = [*_pod_causes(snapshot, census), *_task_causes(snapshot, census), *_group_causes(snapshot)]
    order = {event: rank for rank, event in enumerate(Event)}
    return tuple(sorted(found, key=lambda c: (c.since if c.since is not None else snapshot.now, order[c.event], c.key)))


def is_settled(pod: Pod, status: Status, restart: Restart | None) -> bool:
    """Return whether something has been decided about the Pod, so that what happens to it no longer matters."""
    if pod.ours or pod.job_version < status.version:
        return True
    return restart is not None and restart.covers(pod, version=status.version, retry_count=status.retry_count)


def misses_pods(snapshot: Snapshot) -> bool:
    """Return whether the first pass of a process finds fewer Pods than the status tells of, and a policy asks for it.

    That is worth a second look before anything is decided: a watch may lag behind the status.
    """
    if not snapshot.memory.fresh or Event.POD_EVICTED not in snapshot.revision.watched:
        return False
    if snapshot.phase not in (Phase.PENDING, Phase.RUNNING):
        return False
    return any(True for _ in _lost_while_away(snapshot, take_census(snapshot.revision.job, snapshot.pods)))


def shows_the_past(snapshot: Snapshot) -> bool:
    """Return whether Pods of an earlier version have ended, in a Job that is at work.

    Those that a resumed Job has kept may be there; after a restart there can be none. To a process that has just begun,
    whose lists may be older than the status, they can mean either, and the end of the Job depends on it.
    """
    if snapshot.phase not in (Phase.PENDING, Phase.RUNNING):
        return False
    return any(pod.is_finished and pod.job_version < snapshot.status.version for pod in snapshot.pods.values())


def _is_current(pod: Pod, snapshot: Snapshot) -> bool:
    return not is_settled(pod, snapshot.status, snapshot.restart)


def _lost_while_away(snapshot: Snapshot, census: Census) -> Iterator[tuple[str, int]]:
    """Yield members that the status counted as alive and that are neither alive, finished nor terminating now."""
    leaving: dict[str, int] = {}
    for pod in census.terminating:
        leaving[pod.task] = leaving.get(pod.task, 0) + 1
    for task, recorded in snapshot.status.task_counts.items():
        now = census.counters.tasks.get(task, {})
        was_finished = recorded.get(SUCCEEDED, 0) + recorded.get(FAILED, 0)
        was_alive = sum(recorded.values()) - was_finished
        finished = now.get(SUCCEEDED, 0) + now.get(FAILED, 0)
        alive = sum(now.values()) - finished
        lost = was_alive - alive - leaving.get(task, 0) - max(0, finished - was_finished)
        for index in census.missing.get(task, ())[: max(0, lost)]:
            yield task, index


def _pod_causes(snapshot: Snapshot, census: Census) -> Iterator[Cause]:
    revision = snapshot.revision
    current = [pod for pod in census.members if _is_current(pod, snapshot)]
    for pod in current:
        if pod.deleted is None and pod.phase == PENDING:
            if revision.has_pending_timeout:
                yield _of_pod(
                    pod,
                    Event.POD_PENDING,
                    f"pod {pod.name} is pending" + (f" ({pod.detail})" if pod.detail else ""),
                    since=pod.created,
                )
            if pod.evicted_at is not None and Event.POD_EVICTED in revision.watched:
                yield _of_pod(
                    pod, Event.POD_EVICTED, f"pod {pod.name} was evicted and does not run yet", since=pod.evicted_at
                )
    vanished = tuple(_vanished(snapshot))
    if Event.POD_FAILED in revision.watched or revision.watches_exit_codes:
        for pod in (*current, *(pod for pod, _ in vanished)):
            if pod.has_failed:
                # Two causes of one moment stand in the order of their events.
                since = pod.deleted if pod.orphaned else None
                yield _of_pod(pod, Event.POD_FAILED, f"pod {pod.name} {pod.describe_failure()}", since=since)
    if Event.POD_EVICTED in revision.watched:
        leaving = ((pod, snapshot.now) for pod in current if pod.deleted is not None)
        yield from _evictions(snapshot, census, gone=(*leaving, *vanished))


def _vanished(snapshot: Snapshot) -> Iterator[tuple[Pod, float]]:
    """Yield the members that are no more and that nothing has replaced, and when they were missed."""
    by_name = snapshot.revision.by_name
    for name, (pod, when) in snapshot.memory.removed.items():
        compiled = by_name.get(pod.task)
        wanted = compiled is not None and 0 <= pod.index < compiled.task.replicas
        if wanted and name not in snapshot.pods and _is_current(pod, snapshot):
            yield pod, when


def _evictions(snapshot: Snapshot, census: Census, *, gone: Iterable[tuple[Pod, float]]) -> Iterator[Cause]:
    """Yield the members that were taken away without the operator's doing; `gone` are those that leave or have left.

    A live Pod that is being deleted by somebody else counts at once; one that vanished between two looks is known from
    memory, or, in the first pass of this process, from the counters that the status recorded. Finished Pods are not
    evicted, and a Pod beyond the Job's replicas is surplus.
    """
    told = set()
    for pod, when in gone:
        if pod.was_taken:
            told.add((pod.task, pod.index))
            reason = f" ({pod.reason})" if pod.reason else ""
            yield _of_pod(pod, Event.POD_EVICTED, f"pod {pod.name} was deleted{reason}", since=pod.deleted or when)
    if snapshot.memory.fresh and snapshot.status.phase in (Phase.PENDING, Phase.RUNNING):
        for task, index in _lost_while_away(snapshot, census):
            if (task, index) not in told:
                name = f"{snapshot.revision.job.name}-{task}-{index}"
                yield Cause(
                    event=Event.POD_EVICTED,
                    key=f"{Event.POD_EVICTED}/{name}",
                    message=f"pod {name} was deleted",
                    task=task,
                    index=index,
                    since=snapshot.now,
                )


def _of_pod(pod: Pod, event: Event, message: str, *, since: float | None = None) -> Cause:
    return Cause(
        event=event,
        key=f"{event}/{pod.uid}",
        message=message,
        task=pod.task,
        index=pod.index,
        partition=pod.partition,
        exits=pod.exits if event is Event.POD_FAILED else (),
        since=pod.since if since is None else since,
    )


def _task_causes(snapshot: Snapshot, census: Census) -> Iterator[Cause]:
    watched = snapshot.revision.watched
    if Event.TASK_COMPLETED not in watched and Event.TASK_FAILED not in watched:
        return
    by_task: dict[str, list[Pod]] = {}
    for pod in census.members:
        if pod.deleted is None and not pod.ours:
            by_task.setdefault(pod.task, []).append(pod)
    for compiled in snapshot.revision.tasks:
        pods = by_task.get(compiled.task.name, [])
        if Event.TASK_COMPLETED in watched and (cause := _completed(compiled, pods, snapshot)):
            yield cause
        if Event.TASK_FAILED in watched and (cause := _failed(compiled, pods, snapshot)):
            yield cause


def _completed(compiled: CompiledTask, pods: list[Pod], snapshot: Snapshot) -> Cause | None:
    task = compiled.task
    done = [pod for pod in pods if pod.phase == SUCCEEDED]
    if task.replicas == 0 or len(done) < task.replicas:
        return None
    fresh = [pod for pod in done if _is_current(pod, snapshot)]
    if not fresh:  # all of them were kept from an earlier run
        return None
    last = max(fresh, key=lambda pod: (pod.since or 0.0, pod.index))
    return Cause(
        event=Event.TASK_COMPLETED,
        key=f"{Event.TASK_COMPLETED}/{task.name}/{last.uid}",
        message=f"task {task.name} completed: all {task.replicas} Pods succeeded",
        task=task.name,
        index=last.index,
        partition=last.partition,
        since=last.since,
    )


def _failed(compiled: CompiledTask, pods: list[Pod], snapshot: Snapshot) -> Cause | None:
    task = compiled.task
    limit = task.effective_max_retry
    live = [pod for pod in pods if pod.phase in (RUNNING, PENDING) and _is_current(pod, snapshot)]
    restarts = sum(pod.restarts for pod in live)
    if task.replicas == 0 or limit < 0 or restarts < limit:
        return None
    worst = max(live, key=lambda pod: (pod.restarts, -pod.index))
    return Cause(
        event=Event.TASK_FAILED,
        key=f"{Event.TASK_FAILED}/{task.name}",  # whichever Pod is the worst: the task's time runs on
        message=f"task {task.name} failed: its containers restarted {restarts} times, maxRetry is {limit}",
        task=task.name,
        index=worst.index,
        partition=worst.partition,
    )


def _group_causes(snapshot: Snapshot) -> Iterator[Cause]:
    group = snapshot.group
    if group is None or group.phase != "Unknown" or group.deleted or snapshot.group_is_old:
        return
    if Event.UNKNOWN in snapshot.revision.watched:
        detail = f": {group.message}" if group.message else ""
        yield Cause(
            event=Event.UNKNOWN,
            key=f"{Event.UNKNOWN}/{group.uid}",
            message=f"PodGroup {group.name} is Unknown{detail}",
            since=group.since,
        )

"""One pass over one Job: snapshot, plan, execute, again until nothing is left to do, then one status write.

The shell around the pure `plan`. It owns what is remembered of each Job and decides when a status is worth a write;
what the status says is the plan's.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Final, Protocol

from vcjob.api.job import Phase
from vcjob.gang.base import Gang, Group
from vcjob.kube.backoff import retry_delay
from vcjob.kube.errors import ApiError, Conflict, NotFound, may_have_happened
from vcjob.lifecycle.causes import is_settled, misses_pods, shows_the_past
from vcjob.lifecycle.outcome import EventNote, Plan, Write
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.pod import Pod
from vcjob.lifecycle.restart import RESTART_KEY, Restart
from vcjob.lifecycle.snapshot import Command, Hold, Snapshot
from vcjob.lifecycle.status import Status

from .doubt import Doubt
from .executor import Executor, Report
from .jobs import JobRecord
from .memory import JobMemory
from .refusals import Refusal, judge

__all__ = ("Observer", "PassResult", "Reconciler", "Surroundings", "status_patch")

log = logging.getLogger(__name__)

_ROUNDS: Final = 8  # plans in one pass; more means that somebody else keeps changing things
_SETTLED_S: Final = 0.5  # numbers of a status that changes nothing else are written when they stood still so long ...
_NUMBERS_S: Final = 2.0  # ... or when the first of them is so old ...
_NUMBERS_PER_POD_S: Final = 0.002  # ... and a large Job's, whose every Pod tells twice, a little later
_NUMBERS_CAP_S: Final = 4.0
_BACKOFF_BASE_S: Final = 0.25
_BACKOFF_CAP_S: Final = 60.0
_UNWATCHED_CAP_S: Final = 10.0  # for what a user is about to make and no watch tells us of: a claim, a freed name
_UNWATCHED: Final = ("ClaimNotFound", "NameConflict", "OldPodsTerminating", "QuotaExceeded")


class PassResult(StrEnum):
    """How a pass over a Job ended, in controller-runtime's words."""

    SUCCESS = "success"  # nothing is to be done before something happens
    REQUEUE_AFTER = "requeue_after"  # the Job is to be looked at again at some time
    ERROR = "error"


class Observer(Protocol):
    """Told what happened, for Events and metrics, after it has happened."""

    def event(self, record: JobRecord, note: EventNote) -> None: ...

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None: ...

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None: ...

    def job_gone(self, record: JobRecord) -> None: ...

    def pass_began(self, waited_s: float) -> None: ...

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[Any]: ...

    def pass_ended(self, result: PassResult, took_s: float) -> None: ...


class Surroundings(Protocol):
    """What a pass looks at besides the Job's own record."""

    def job(self, key: tuple[str, str]) -> JobRecord | None: ...

    def put_job(self, raw: dict[str, Any]) -> None: ...

    def drop_job(self, record: JobRecord) -> None: ...

    async def read_job(self, record: JobRecord) -> None: ...

    async def read_pods(self, record: JobRecord) -> None: ...

    def pods_of(self, record: JobRecord) -> Mapping[str, Pod]: ...

    def group_of(self, record: JobRecord) -> Group | None: ...

    def queue_of(self, name: str) -> Mapping[str, Any] | None: ...

    def knows_queues(self) -> bool: ...

    def priorities(self) -> Mapping[str, int]: ...

    def now(self) -> float: ...


class Reconciler:
    """Looks at Jobs; the caller sees to it that no Job is looked at twice at the same time."""

    def __init__(
        self,
        *,
        executor: Executor,
        surroundings: Surroundings,
        gang: Gang,
        observer: Observer,
        chance: Callable[[], float],
    ) -> None:
        self._executor = executor
        self._around = surroundings
        self._gang = gang
        self._observer = observer
        self._chance = chance

    async def look(self, key: tuple[str, str], memory: JobMemory) -> float | None:
        """Make one pass; return in how many seconds to look again, None for not before something happens."""
        for _ in range(_ROUNDS):
            record = self._around.job(key)
            if record is None or record.uid != memory.uid:
                return None
            if memory.doubt is not None:
                await self._around.read_job(record)
                record = self._around.job(key)
                if record is None or self._settle(record, memory, memory.doubt):
                    continue
            self._drop_settled(record, memory)
            command = memory.commands[0] if memory.commands else None
            snapshot = self._snapshot(record, memory, command)
            if not memory.verified and (misses_pods(snapshot) or shows_the_past(snapshot)):
                await self._around.read_pods(record)
                memory.verified = True
                continue
            made = plan(snapshot)
            if made.seen is not None:
                memory.first_seen = made.seen
            if made.write is Write.FIRST:
                if not await self._write(record, memory, made):
                    return 0.0
                self._announce(record, memory, made.events)
            if command is not None:
                # Only now: it has been deleted, so a pass that fails before this point must find it again.
                memory.commands.pop(0)
                in_vain = [note for note in made.events if note.reason == "ActionIgnored"]
                self._announce(record, memory, (*in_vain, *memory.told))
            report = await self._run_stages(record, memory, made)
            if report.refusals:
                retry = self._hold(record, memory, report.refusals)
                if retry is not None:
                    return retry
                continue
            if made.stages:
                memory.refusals = 0
            if made.write is Write.AFTER or (made.write is Write.REPLAN and not made.stages):
                again = await self._finish(record, memory, made)
                return 0.0 if memory.commands else again
        return 0.0

    def _drop_settled(self, record: JobRecord, memory: JobMemory) -> None:
        """Forget what no longer matters: refusals of an older spec, vanished Pods about which something was decided."""
        if memory.revision is not record.revision:
            memory.revision, memory.hold, memory.rejected, memory.refusals = record.revision, None, "", 0
        if memory.removed:
            status = record.status
            restart = Restart.read(status.controlled.get(RESTART_KEY))
            memory.removed = {k: v for k, v in memory.removed.items() if not is_settled(v[0], status, restart)}

    def _snapshot(self, record: JobRecord, memory: JobMemory, command: Command | None) -> Snapshot:
        queue = self._around.queue_of(record.revision.job.spec.queue)
        now = self._around.now()
        if memory.hold is not None and not 0 < memory.hold.until - now <= _BACKOFF_CAP_S:
            memory.hold = None  # over, or the clock has been set back
        return Snapshot(
            revision=record.revision,
            status=record.status,
            now=now,
            created=record.created,
            pods=self._around.pods_of(record),
            gang=self._gang,
            group=self._around.group_of(record),
            queue=queue,
            knows_queues=self._around.knows_queues(),
            priorities=self._around.priorities(),
            command=command,
            memory=memory.freeze(),
            deleting=record.deleting,
        )

    # Stages

    async def _run_stages(self, record: JobRecord, memory: JobMemory, made: Plan) -> Report:
        total = Report()
        queue = self._around.queue_of(record.revision.job.spec.queue)
        forwarded = bool(queue and (queue.get("spec") or {}).get("extendClusters"))
        for stage in made.stages:
            report = await self._executor.run_stage(record, memory, stage, forwarded=forwarded)
            total.created += report.created
            total.deleted += report.deleted
            total.refusals += report.refusals
            if report.job is not None:
                self._around.put_job(report.job)
            for note in dict.fromkeys(report.notes):
                self._observer.event(record, EventNote(type="Warning", reason=note.reason, message=note.message))
            if report.refusals:
                break
        self._tell_of_pods(record, total)
        return total

    def _tell_of_pods(self, record: JobRecord, report: Report) -> None:
        if report.created:
            self._observer.pods_created(record, report.created, max(0.0, self._around.now() - record.created))
            text = f"Created {report.created} Pods" if report.created > 1 else "Created 1 Pod"
            self._observer.event(record, EventNote(type="Normal", reason="SuccessfulCreate", message=text))
        if report.deleted:
            text = f"Deleted {report.deleted} Pods" if report.deleted > 1 else "Deleted 1 Pod"
            self._observer.event(record, EventNote(type="Normal", reason="SuccessfulDelete", message=text))

    def _hold(self, record: JobRecord, memory: JobMemory, refusals: list[Refusal]) -> float | None:
        """Remember what was refused; return a delay when nothing is to be said about it yet."""
        worst = next((r for r in refusals if r.permanent), None) or next(
            (r for r in refusals if not r.transient), refusals[0]
        )
        if worst.permanent:
            memory.rejected = worst.message
            self._set_hold(memory, worst, delay=_BACKOFF_CAP_S)
            return None
        if worst.reason == "NamespaceTerminating":
            self._set_hold(memory, worst, delay=_BACKOFF_CAP_S)
            return None
        if worst.conflict:
            return 0.05
        memory.refusals += 1
        cap = _UNWATCHED_CAP_S if worst.reason in _UNWATCHED else _BACKOFF_CAP_S
        delay = min(cap, worst.retry_after or retry_delay(memory.refusals - 1, chance=self._chance()))
        log.info(
            "step refused, will retry",
            extra={
                "job": "/".join(record.key),
                "reason": worst.reason,
                "error": worst.message,
                "wait_s": round(delay, 2),
            },
        )
        if worst.transient and memory.refusals < 3:
            return delay  # not worth a word in the status yet
        if not worst.transient:
            kind, message = "FailedDelete" if worst.deletion else "FailedCreate", f"{worst.reason}: {worst.message}"
            if worst.reason in ("NameConflict", "PluginError", "ClaimNotFound"):
                kind, message = worst.reason, worst.message
            self._observer.event(record, EventNote(type="Warning", reason=kind, message=message))
        self._set_hold(memory, worst, delay=delay)
        return None

    def _set_hold(self, memory: JobMemory, refusal: Refusal, *, delay: float) -> None:
        """Have the next plan make nothing and say why."""
        until = self._around.now() + delay
        memory.hold = Hold(until=until, reason=refusal.reason, message=refusal.message, deletion=refusal.deletion)

    # Status

    async def _finish(self, record: JobRecord, memory: JobMemory, made: Plan) -> float | None:
        delays = [made.wake - self._around.now()] if made.wake is not None else []
        if made.status is not None:
            wait = self._postpone(record, memory, made.status)
            if wait is not None:
                delays.append(wait)
            elif not await self._write(record, memory, made):
                return 0.1
        self._announce(record, memory, made.events)
        if memory.removed:
            present = self._around.pods_of(record)
            memory.removed = {name: gone for name, gone in memory.removed.items() if name not in present}
        memory.fresh = False
        return max(0.0, min(delays)) if delays else None

    def _postpone(self, record: JobRecord, memory: JobMemory, status: Status) -> float | None:
        """Return for how many seconds a write can wait, because it would only move numbers; None when it cannot.

        Numbers move in bursts (a gang starts, a gang ends), so they are written when they have settled, and at the
        latest some seconds after the first.
        """
        if not _moves_numbers_only(record.status, status):
            memory.unwritten = None
            return None
        new = status.write()
        if new == record.raw_status:
            memory.unwritten = None
            return None
        now = asyncio.get_running_loop().time()
        if memory.unwritten is None:
            memory.unwritten_since = now
        if memory.unwritten != new:
            memory.unwritten, memory.unwritten_moved = new, now
        latest = _NUMBERS_S + _NUMBERS_PER_POD_S * record.revision.job.spec.total_replicas
        due = min(memory.unwritten_moved + _SETTLED_S, memory.unwritten_since + min(latest, _NUMBERS_CAP_S))
        return due - now if due > now else None

    async def _write(self, record: JobRecord, memory: JobMemory, made: Plan) -> bool:
        """Write the plan's status if it says anything new; False when the Job must be looked at afresh."""
        status = made.status
        assert status is not None
        patch = status_patch(record.raw_status, status.write())
        if not patch:
            return True
        try:
            raw = await self._executor.write_status(record, patch)
        except NotFound:
            self._around.drop_job(record)
            return False
        except Conflict:
            await self._around.read_job(record)
            return False
        except ApiError as error:
            if may_have_happened(error):
                memory.doubt = Doubt(
                    before=record.status.phase,
                    status=status,
                    events=made.events,
                    by_command=bool(memory.commands) and made.write is Write.FIRST,
                )
            refusal = judge(error, action="write status")
            if refusal.permanent:
                log.error("status refused", extra={"job": "/".join(record.key), "error": error.message})
            raise
        memory.unwritten = memory.doubt = None
        self._around.put_job(raw)
        self._tell_of_phase(record, record.status.phase, status)
        return True

    def _settle(self, record: JobRecord, memory: JobMemory, doubt: Doubt) -> bool:
        """Take a status write for done when the Job says so; False when it has not happened (yet)."""
        if status_patch(record.raw_status, doubt.status.write()):
            return False
        memory.doubt = None
        if doubt.by_command:
            memory.commands.pop(0)
        self._tell_of_phase(record, doubt.before, doubt.status)
        self._announce(record, memory, doubt.events)
        return True

    def _tell_of_phase(self, record: JobRecord, old: Phase | None, new: Status) -> None:
        if new.phase is old:
            return
        self._observer.phase_changed(record, old, new)
        log.info(
            "phase changed",
            extra={
                "job": "/".join(record.key),
                "old": str(old or ""),
                "new": str(new.phase),
                "reason": new.reason,
            },
        )

    def _announce(self, record: JobRecord, memory: JobMemory, events: tuple[EventNote, ...]) -> None:
        """Record the Events of a plan; what the last one told already and still holds is not told again."""
        for note in events:
            if note not in memory.told:
                self._observer.event(record, note)
        memory.told = frozenset(note for note in events if note.standing)


def _moves_numbers_only(old: Status, new: Status) -> bool:
    """Return whether a reader loses nothing when the new status comes a little later."""
    if not new.alive:  # the last Pod is gone: whoever waits for that waits no longer
        return False
    return (new.phase, new.reason, new.version, new.retry_count, new.min_available, dict(new.controlled)) == (
        old.phase,
        old.reason,
        old.version,
        old.retry_count,
        old.min_available,
        dict(old.controlled),
    )


def status_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from one status to another; empty when they are equal."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        known = old.get(key)
        if value == known:
            continue
        patch[key] = status_patch(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return patch

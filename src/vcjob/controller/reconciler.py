"""One pass over one Job: snapshot, plan, execute, again until nothing is left to do, then one status write.

The shell around the pure `plan`. It owns what is remembered of each Job.
"""

import logging
from collections.abc import Callable
from typing import Final

from vcjob.gang.base import Gang
from vcjob.lifecycle.causes import is_settled, misses_pods, shows_the_past
from vcjob.lifecycle.outcome import EventNote, Plan, Write
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.restart import RESTART_KEY, Restart
from vcjob.lifecycle.snapshot import Command, Hold, Snapshot

from .doubt import DOUBT_S
from .executor import Executor
from .jobs import JobRecord
from .memory import JobMemory
from .observer import Observer
from .quiet import Quiet
from .refusals import BACKOFF_CAP_S, Refusal, wait_after
from .reports import Report
from .statuses import StatusWriter
from .view import View

__all__ = ("Reconciler",)

log = logging.getLogger(__name__)

_ROUNDS: Final = 8  # plans in one pass; more means that somebody else keeps changing things


class Reconciler:
    """Looks at Jobs; the caller sees to it that no Job is looked at twice at the same time."""

    def __init__(
        self,
        *,
        executor: Executor,
        view: View,
        quiet: Quiet,
        gang: Gang,
        observer: Observer,
        chance: Callable[[], float],
    ) -> None:
        self._executor = executor
        self._view = view
        self._quiet = quiet
        self._gang = gang
        self._observer = observer
        self._chance = chance
        self._statuses = StatusWriter(executor=executor, view=view, quiet=quiet, observer=observer)

    async def look(self, key: tuple[str, str], memory: JobMemory) -> float | None:
        """Make one pass; return in how many seconds to look again, None for not before something happens."""
        for _ in range(_ROUNDS):
            record = self._view.job(key)
            if record is None or record.uid != memory.uid:
                return None
            if memory.doubt is not None:
                await self._view.read_job(record)
                record = self._view.job(key)
                if record is None or self._statuses.settle(record, memory, memory.doubt):
                    continue
                if not 0 <= self._view.now() - memory.doubt.since < DOUBT_S:
                    memory.doubt = None
            self._drop_settled(record, memory)
            command = memory.commands[0] if memory.commands else None
            snapshot = self._snapshot(record, memory, command)
            if not memory.verified and (misses_pods(snapshot) or shows_the_past(snapshot)):
                await self._view.read_pods(record)
                memory.verified = True
                continue
            made = plan(snapshot)
            if made.seen is not None:
                memory.first_seen = made.seen
            if made.write is Write.FIRST or (made.write is Write.EARLY and not self._quiet.is_busy()):
                if not await self._statuses.write(record, memory, made):
                    return 0.0
                self._statuses.announce(record, memory, made.events)
            if command is not None:
                # Only now: it has been deleted, so a pass that fails before this point must find it again.
                memory.commands.pop(0)
                in_vain = [note for note in made.events if note.reason == "ActionIgnored"]
                self._statuses.announce(record, memory, (*in_vain, *memory.told))
            report = await self._run_stages(record, memory, made)
            if report.refusals:
                retry = self._hold(record, memory, report.refusals)
                if retry is not None:
                    return retry
                continue
            if made.stages:
                memory.refusals = 0
            if made.write is Write.AFTER or not (made.write is Write.FIRST or made.stages):
                again = await self._statuses.finish(record, memory, made)
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
        queue = self._view.queue_of(record.revision.job.spec.queue)
        now = self._view.now()
        if memory.hold is not None and not 0 < memory.hold.until - now <= BACKOFF_CAP_S:
            memory.hold = None  # over, or the clock has been set back
        return Snapshot(
            revision=record.revision,
            status=record.status,
            now=now,
            created=record.created,
            pods=self._view.pods_of(record),
            gang=self._gang,
            group=self._view.group_of(record),
            queue=queue,
            knows_queues=self._view.knows_queues,
            priorities=self._view.priorities,
            command=command,
            memory=memory.freeze(),
            deleting=record.deleting,
        )

    # Stages

    async def _run_stages(self, record: JobRecord, memory: JobMemory, made: Plan) -> Report:
        total = Report()
        queue = self._view.queue_of(record.revision.job.spec.queue)
        forwarded = bool(queue and (queue.get("spec") or {}).get("extendClusters"))
        for stage in made.stages:
            report = await self._executor.run_stage(record, memory, stage, forwarded=forwarded)
            total.created += report.created
            total.deleted += report.deleted
            total.refusals += report.refusals
            if report.job is not None:
                self._view.put_job(report.job)
            for note in dict.fromkeys(report.notes):
                self._observer.event(record, EventNote(type="Warning", reason=note.reason, message=note.message))
            if report.refusals:
                break
        self._tell_of_pods(record, total)
        return total

    def _tell_of_pods(self, record: JobRecord, report: Report) -> None:
        if report.created:
            self._observer.pods_created(record, report.created, max(0.0, self._view.now() - record.created))
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
            self._set_hold(memory, worst, delay=BACKOFF_CAP_S)
            return None
        if worst.reason == "NamespaceTerminating":
            self._set_hold(memory, worst, delay=BACKOFF_CAP_S)
            return None
        if worst.conflict:
            return 0.05
        memory.refusals += 1
        delay = wait_after(worst, attempt=memory.refusals - 1, chance=self._chance())
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
        until = self._view.now() + delay
        memory.hold = Hold(until=until, reason=refusal.reason, message=refusal.message, deletion=refusal.deletion)

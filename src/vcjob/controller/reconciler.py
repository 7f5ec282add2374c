"""One pass over one Job: snapshot, plan, execute, again until nothing is left to do, then one status write.

The shell around the pure `plan`. It owns what is remembered of each Job.
"""

import logging
from collections.abc import Callable
from typing import Final

from vcjob.gang.base import Gang
from vcjob.kube.backoff import retry_delay
from vcjob.lifecycle.causes import is_settled, misses_pods, shows_the_past
from vcjob.lifecycle.outcome import EventNote, Plan, Write
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.restart import RESTART_KEY, Restart
from vcjob.lifecycle.snapshot import Command, Hold, Snapshot
from vcjob.lifecycle.steps import CreatePods

from .doubt import DOUBT_S
from .executor import Executor
from .jobs import JobRecord
from .memory import JobMemory
from .observer import Observer
from .queue import Key
from .quiet import Quiet
from .refusals import BACKOFF_CAP_S, Refusal, wait_after
from .reports import Report
from .statuses import StatusWriter
from .view import View

__all__ = ("Reconciler",)

log = logging.getLogger(__name__)

_RESTLESS_S: Final = 0.05
_RESTLESS_CAP_S: Final = 10.0
# One word of the server's, or of what stands between, ends no Job for ever: it is tried again after these seconds.
_APPEALS_S: Final = (0.5, 1.5)
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
        is_called: Callable[[Key], bool],
        go_on: Callable[[Key], None],
    ) -> None:
        """`is_called`: whether a pass is to end early because somebody waits; `go_on` is told that a long one lives."""
        self._executor = executor
        self._view = view
        self._quiet = quiet
        self._gang = gang
        self._observer = observer
        self._chance = chance
        self._is_called = is_called
        self._go_on = go_on
        self._statuses = StatusWriter(executor=executor, view=view, quiet=quiet, observer=observer)

    async def look(self, key: Key, memory: JobMemory) -> float | None:
        """Make one pass; return in how many seconds to look again, None for not before something happens."""
        rounds = 0
        long = False  # a stage is under way that takes its time
        while rounds < _ROUNDS:
            rounds += 1
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
            if made.write is Write.FIRST or (made.write is Write.EARLY and not self._quiet.is_busy(record.namespace)):
                if not await self._statuses.write(record, memory, made):
                    return 0.0
                self._statuses.announce(record, memory, made.events)
            elif long and _only_creates(made) and not await self._statuses.keep_up(record, memory, made):
                return 0.0
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
                memory.refusals = memory.verdicts = 0
            if report.cut:
                if self._is_called(key):
                    return 0.0
                rounds, long = 0, True
                self._go_on(key)
                continue
            if made.write is Write.AFTER or not (made.write is Write.FIRST or made.stages):
                again = await self._statuses.finish(record, memory, made)
                memory.restless = 0
                return 0.0 if memory.commands else again
        return self._rest(key, memory)

    def _rest(self, key: Key, memory: JobMemory) -> float:
        """Return how long to leave a Job alone that would not come to rest: longer each time."""
        delay = retry_delay(memory.restless, chance=self._chance(), base_s=_RESTLESS_S, cap_s=_RESTLESS_CAP_S)
        memory.restless += 1
        level = logging.WARNING if memory.restless > 1 else logging.INFO
        log.log(level, "pass came to no end, will look again", extra={"job": "/".join(key), "wait_s": round(delay, 2)})
        return delay

    def _drop_settled(self, record: JobRecord, memory: JobMemory) -> None:
        """Forget what no longer matters: refusals of an older spec, vanished Pods about which something was decided."""
        if memory.revision is not record.revision:
            memory.revision, memory.hold, memory.rejected = record.revision, None, ""
            memory.refusals = memory.verdicts = 0
        if memory.removed:
            status = record.status
            restart = Restart.read(status.controlled.get(RESTART_KEY))
            memory.removed = {k: v for k, v in memory.removed.items() if not is_settled(v[0], status, restart)}

    def _snapshot(self, record: JobRecord, memory: JobMemory, command: Command | None) -> Snapshot:
        queue = self._view.queues.get(record.revision.job.spec.queue)
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
        queue = self._view.queues.get(record.revision.job.spec.queue)
        forwarded = bool(queue and (queue.get("spec") or {}).get("extendClusters"))
        for stage in made.stages:
            report = await self._executor.run_stage(record, memory, stage, forwarded=forwarded)
            total.add(report)
            if report.job is not None:
                self._view.put_job(report.job)
            for note in dict.fromkeys(report.notes):
                self._observer.event(record, EventNote(type="Warning", reason=note.reason, message=note.message))
            if report.refusals or report.cut:
                break
        self._tell_of_pods(record, memory, total)
        return total

    def _tell_of_pods(self, record: JobRecord, memory: JobMemory, report: Report) -> None:
        if report.created:
            self._observer.pods_created(record, report.created, max(0.0, self._view.now() - record.created))
        memory.created += report.created
        memory.deleted += report.deleted
        if report.cut:
            return
        if memory.created:
            text = f"Created {memory.created} Pods" if memory.created > 1 else "Created 1 Pod"
            self._observer.event(record, EventNote(type="Normal", reason="SuccessfulCreate", message=text))
        if memory.deleted:
            text = f"Deleted {memory.deleted} Pods" if memory.deleted > 1 else "Deleted 1 Pod"
            self._observer.event(record, EventNote(type="Normal", reason="SuccessfulDelete", message=text))
        memory.created = memory.deleted = 0

    def _hold(self, record: JobRecord, memory: JobMemory, refusals: list[Refusal]) -> float | None:
        """Remember what was refused; return a delay when nothing is to be said about it yet."""
        worst = next((r for r in refusals if r.permanent), None) or next(
            (r for r in refusals if not r.transient), refusals[0]
        )
        if worst.permanent:
            memory.refusals += 1
            memory.verdicts += 1
            if memory.verdicts <= len(_APPEALS_S):
                delay = _APPEALS_S[memory.verdicts - 1]
                self._log_refusal(record, worst, delay)
                self._set_hold(memory, worst, delay=delay)
                return None
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
        self._log_refusal(record, worst, delay)
        if worst.transient and memory.refusals < 3:
            return delay  # not worth a word in the status yet
        if not worst.transient:
            kind, message = "FailedDelete" if worst.deletion else "FailedCreate", f"{worst.reason}: {worst.message}"
            if worst.reason in ("NameConflict", "PluginError", "ClaimNotFound"):
                kind, message = worst.reason, worst.message
            self._observer.event(record, EventNote(type="Warning", reason=kind, message=message))
        self._set_hold(memory, worst, delay=delay)
        return None

    def _log_refusal(self, record: JobRecord, refusal: Refusal, delay: float) -> None:
        told = {"reason": refusal.reason, "error": refusal.message, "wait_s": round(delay, 2)}
        log.info("step refused, will retry", extra={"job": "/".join(record.key), **told})

    def _set_hold(self, memory: JobMemory, refusal: Refusal, *, delay: float) -> None:
        """Have the next plan make nothing and say why."""
        until = self._view.now() + delay
        memory.hold = Hold(until=until, reason=refusal.reason, message=refusal.message, deletion=refusal.deletion)


def _only_creates(made: Plan) -> bool:
    """Return whether the plan's status holds as it is, since nothing is going to be done but to make Pods."""
    return bool(made.stages) and all(isinstance(step, CreatePods) for stage in made.stages for step in stage)

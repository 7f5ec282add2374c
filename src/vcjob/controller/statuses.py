"""Writing a Job's status: when it is worth a request, how it is sent, and what is told once it holds.

What the status says is the plan's. Two laws: what a reader waits for (a phase, a warning, a Job that ends) is written
at once; what only moves numbers waits until they stand still, and gives way while its namespace is busy with Pods.
"""

import asyncio
import logging
from typing import Final

from vcjob.api.job import Event, Phase
from vcjob.kube.backoff import patience
from vcjob.kube.errors import ApiError, Conflict, NotFound, may_have_happened
from vcjob.lifecycle.outcome import EventNote, Plan, Write
from vcjob.lifecycle.restart import RESTART_KEY
from vcjob.lifecycle.status import Status

from .doubt import Doubt
from .executor import Executor
from .jobs import JobRecord
from .memory import JobMemory
from .observer import Observer
from .quiet import Quiet
from .refusals import judge
from .view import View

__all__ = ("StatusWriter",)

log = logging.getLogger(__name__)

_SETTLED_S: Final = 0.5  # numbers of a status that changes nothing else are written when they stood still so long ...
_NUMBERS_S: Final = 2.0  # ... or when the first of them is so old ...
_NUMBERS_PER_POD_S: Final = 0.002  # ... and a large Job's, whose every Pod tells twice, a little later
_NUMBERS_CAP_S: Final = 4.0
_COURSE: Final = frozenset({"PodGroupPending", "PodsPending", "PodsRunning"})  # reasons that every Job has for a while


class StatusWriter:
    """Writes status, for the reconciler's passes."""

    def __init__(self, *, executor: Executor, view: View, quiet: Quiet, observer: Observer) -> None:
        self._executor = executor
        self._view = view
        self._quiet = quiet
        self._observer = observer

    async def finish(self, record: JobRecord, memory: JobMemory, made: Plan) -> float | None:
        """Write what the plan says now or later; return in how many seconds to look again, None for not at all."""
        now = self._view.now()
        delays = [made.wake - now] if made.wake is not None else []
        if made.status is not None:
            wait = self._postpone(record, memory, made.status, news=bool(made.events))
            if wait is not None:
                delays.append(wait)
            elif not await self.write(record, memory, made):
                return 0.1
            elif record.status.phase is None:
                delays.append(0.0)  # it has begun; perhaps so much has started meanwhile that it is Running
        self.announce(record, memory, made.events)
        if memory.removed:
            present = self._view.pods_of(record)
            memory.removed = {name: gone for name, gone in memory.removed.items() if name not in present}
        memory.fresh = False
        return max(0.0, min(delays)) if delays else None

    def _postpone(self, record: JobRecord, memory: JobMemory, status: Status, *, news: bool) -> float | None:
        """Return for how many seconds a write can wait; None when it cannot.

        Numbers move in bursts (a gang starts, a gang ends), so they are written when they have settled, and at the
        latest some seconds after the first. While its namespace is busy, all that is not news waits.
        """
        numbers = _moves_numbers_only(record.status, status)
        busy = self._quiet.is_busy(record.namespace) and not news and _can_give_way(record, status)
        new = status.write()
        if not (numbers or busy) or new == record.raw_status:
            memory.unwritten = None
            return None
        now = asyncio.get_running_loop().time()
        if memory.unwritten is None:
            memory.unwritten_since = now
        if memory.unwritten != new:
            memory.unwritten, memory.unwritten_moved = new, now
        due = now
        if numbers:
            latest = _NUMBERS_S + _NUMBERS_PER_POD_S * record.revision.job.spec.total_replicas
            due = min(memory.unwritten_moved + _SETTLED_S, memory.unwritten_since + min(latest, _NUMBERS_CAP_S))
        if busy and due <= now:
            self._quiet.wait(record.key)
            due = memory.unwritten_since + patience(self._quiet.waiting(record.namespace))
        return due - now if due > now else None

    async def keep_up(self, record: JobRecord, memory: JobMemory, made: Plan) -> bool:
        """Write how far a long stage has come, when it is time; False when the Job must be looked at afresh."""
        if made.status is None or self._postpone(record, memory, made.status, news=False) is not None:
            return True
        return await self.write(record, memory, made)

    async def write(self, record: JobRecord, memory: JobMemory, made: Plan) -> bool:
        """Write the plan's status if it says anything new; False when the Job must be looked at afresh."""
        assert made.status is not None
        begins = record.status.phase is None and made.status.phase is not Phase.PENDING
        if begins and memory.unwritten is not None:
            # Whoever watches a Job's life sees it begin: a first status that gave way goes before other news.
            await self._write(record, memory, Plan(status=Status.read(memory.unwritten)))
            return False
        return await self._write(record, memory, made)

    async def _write(self, record: JobRecord, memory: JobMemory, made: Plan) -> bool:
        status = made.status
        assert status is not None
        new = status.write()
        if new == record.raw_status:
            return True
        try:
            raw = await self._executor.write_status(record, new)
        except (NotFound, Conflict):
            await self._view.read_job(record)
            return False
        except ApiError as error:
            if may_have_happened(error):
                memory.doubt = Doubt(
                    since=self._view.now(),
                    before=record.status.phase,
                    status=status,
                    events=made.events,
                    by_command=bool(memory.commands) and made.write is Write.FIRST,
                )
            refusal = judge(error, action="write status")
            if refusal.permanent:
                log.error("status refused", extra={"job": "/".join(record.key), "error": error.message})
                note = EventNote(
                    type="Warning", reason="StatusRefused", message=f"the server refuses the status: {error}"
                )
                self._observer.event(record, note)
            raise
        memory.unwritten = memory.doubt = None
        self._view.put_job(raw)
        self._tell_of_phase(record, record.status.phase, status)
        return True

    def settle(self, record: JobRecord, memory: JobMemory, doubt: Doubt) -> bool:
        """Take a status write for done when the Job says so; False when it has not happened (yet)."""
        if record.raw_status != doubt.status.write():
            return False
        memory.doubt = None
        if doubt.by_command:
            memory.commands.pop(0)
        self._tell_of_phase(record, doubt.before, doubt.status)
        self.announce(record, memory, doubt.events)
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

    def announce(self, record: JobRecord, memory: JobMemory, events: tuple[EventNote, ...]) -> None:
        """Record the Events of a plan; what the last one told already and still holds is not told again."""
        for note in events:
            if note not in memory.told:
                self._observer.event(record, note)
        memory.told = frozenset(note for note in events if note.standing)


def _can_give_way(record: JobRecord, new: Status) -> bool:
    """Return whether the new status tells of nothing but what was to be expected, and nobody depends on it."""
    if Event.POD_EVICTED in record.revision.watched and _counts_more(record.status, new):
        return False
    return _takes_its_course(record.status, new)


def _takes_its_course(old: Status, new: Status) -> bool:
    """Return whether the new status tells of nothing but the Job's expected way within its phase."""
    if new.failed > old.failed or new.unknown > old.unknown:
        return False
    started = new.running + new.succeeded
    if (old.phase is None and started) or (old.alive and not new.alive):  # the next status is another phase
        return False
    if new.reason != old.reason and new.reason not in _COURSE:  # it waits for something that others do not wait for
        return False
    return (new.phase, new.version, new.retry_count, new.controlled.get(RESTART_KEY)) == (
        old.phase or Phase.PENDING,
        old.version,
        old.retry_count,
        old.controlled.get(RESTART_KEY),
    )


def _counts_more(old: Status, new: Status) -> bool:
    """Return whether Pods are counted that were not.

    When they vanish while no process of ours is there, only the count tells the next one that they were.
    """
    before = {task: sum(counts.values()) for task, counts in old.task_counts.items()}
    return any(sum(counts.values()) > before.get(task, 0) for task, counts in new.task_counts.items())


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

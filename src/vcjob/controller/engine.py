"""The engine: the queue between the view and the reconciler, and the passes it has them make.

News only marks a Job as worth a look; what to do follows from the view. The view is kept in step on every replica, but
only the leader makes passes.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from time import perf_counter
from typing import Final

from vcjob.gang.base import Gang
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError
from vcjob.kube.lease import NotLeading
from vcjob.kube.limiter import FairLimiter
from vcjob.lifecycle.outcome import EventNote, earliest
from vcjob.lifecycle.pod import Pod

from .commands import Commands
from .executor import Executor
from .jobs import JobRecord
from .memory import JobMemory
from .observer import Observer, PassResult
from .pace import Pace
from .queue import Key, WorkQueue
from .quiet import Quiet
from .reconciler import Reconciler
from .refusals import Refusal, judge, wait_after
from .requests import CommandRequest
from .view import View

__all__ = ("Engine",)

log = logging.getLogger(__name__)

_LAST_WORDS_S: Final = 1.5  # for the decisions that Commands asked for, when the work is ended
_COMMAND_CAP_S: Final = 5.0  # between tries while a Command waits
_RESYNC_S: Final = 600.0  # every Job is looked at this often, whatever happens; spread over the time


class Engine:
    """Everything between watch events and API writes."""

    def __init__(
        self,
        api: ApiClient,
        *,
        gang: Gang,
        observer: Observer,
        namespaces: tuple[str, ...] = (),
        assert_leading: Callable[[], None],
    ) -> None:
        self.queue = WorkQueue(on_taken=observer.pass_began)
        self.limiter = FairLimiter()
        self.quiet = Quiet(self.limiter, look=lambda key: self.hear(key, can_wait=False))
        self.view = View(api, gang=gang, namespaces=namespaces, listener=self)
        self.oldest_pass: dict[Key, float] = {}  # passes under way -> when they began (steady)
        self._observer = observer
        self._pace = Pace()
        self._memories: dict[Key, JobMemory] = {}
        self._commands = Commands(api, assert_leading=assert_leading, observer=observer)
        self._failed: dict[Key, int] = {}
        self._bound: dict[Key, asyncio.Task[None]] = {}  # passes under way that carry out Commands
        executor = Executor(
            api,
            limiter=self.limiter,
            pods=self.view.own_pods,
            groups=self.view.own_groups,
            gang=gang,
            assert_leading=assert_leading,
            is_current=self.view.is_current,
            has_job=self.view.has_job,
            is_called=self._is_called,
        )
        self._reconciler = Reconciler(
            executor=executor,
            view=self.view,
            quiet=self.quiet,
            gang=gang,
            observer=observer,
            chance=random.random,
            is_called=self._is_called,
            go_on=self._goes_on,
        )

    # News

    def hear(self, key: Key, *, can_wait: bool) -> None:
        delay = self._pace.delay(steady()) if can_wait else 0.0
        if delay:
            self.queue.add_after(key, delay)
        else:
            self.queue.add(key)

    def lose_job(self, key: Key, last: JobRecord | None) -> None:
        self._memories.pop(key, None)
        self._failed.pop(key, None)
        self.quiet.forget(key)
        self.queue.forget(key)
        if last is not None:
            self._observer.job_gone(last)

    def lose_pod(self, pod: Pod) -> None:
        memory = self._memories.get((pod.namespace, pod.job))
        if memory is None or memory.uid != pod.owner_uid:
            return
        memory.lost_at = self.view.now()
        if not pod.ours and (pod.was_taken or pod.has_failed):  # perhaps nobody has looked since
            memory.removed[pod.name] = (pod, memory.lost_at)

    def take_command(self, request: CommandRequest) -> None:
        """Queue a Command; it is deleted, and then carried out, by the next pass over its Job."""
        if self._commands.take(request):
            self.queue.add((request.namespace, request.target))

    def lose_command(self, request: CommandRequest) -> None:
        """Note that a Command is gone."""
        self._commands.withdraw(request)

    def look_again(self) -> None:
        """Look at every Job at once, because what stood in their way may be gone."""
        for memory in self._memories.values():
            memory.hold = None
            memory.refusals = 0
        self._failed.clear()
        for record in self.view.jobs:
            self.queue.add(record.key)

    # Work

    async def work(self) -> None:
        """Look at Jobs for as long as this process leads; cancelled when it no longer does."""
        await self.view.synced()
        self.quiet.begin()
        for record in self.view.jobs:
            self.queue.add(record.key)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._resync(), name="resync")
                try:
                    while True:
                        key = await self.queue.get()
                        task = group.create_task(self._look(key), name=f"job {key[0]}/{key[1]}")
                        if self._owes(key):
                            self._bound[key] = task
                finally:
                    await self._keep_promises()
        finally:
            self.forget()

    def forget(self) -> None:
        """Forget what was remembered for the next pass: before it, somebody else may lead and do it all."""
        self._memories.clear()
        self._failed.clear()
        self._commands.forget_doubts()

    async def _keep_promises(self) -> None:
        """Let passes that have deleted a Command write what came of it; nobody else would carry it out."""
        if self._bound:
            await asyncio.wait(self._bound.values(), timeout=_LAST_WORDS_S)
        for key, memory in self._memories.items():
            for command in memory.commands:
                log.warning("command lost", extra={"job": "/".join(key), "command": command.name})

    async def _resync(self) -> None:
        """Look at every Job now and then, in case that an event was lost on a way nobody thought of."""
        while True:
            await asyncio.sleep(_RESYNC_S)
            try:
                if wrong := await self.view.read_jobs():
                    log.warning("jobs were not as the watch had told", extra={"jobs": wrong})
            except ApiError as error:
                log.warning("jobs cannot be listed", extra={"error": error.message})
            for record in list(self.view.jobs):
                self.queue.add_after(record.key, random.random() * _RESYNC_S / 2)

    async def _look(self, key: Key) -> None:
        began = perf_counter()
        self.oldest_pass[key] = steady()
        again: float | None = None
        result = PassResult.SUCCESS
        try:
            with self._observer.passing(key):
                try:
                    again = await self._pass(key)
                except* NotLeading:  # by itself, or from some of many writes side by side
                    pass
            self._failed.pop(key, None)
            result = PassResult.SUCCESS if again is None else PassResult.REQUEUE_AFTER
        except ApiError as error:
            result, again = PassResult.ERROR, self._after_failure(key, judge(error, action="look at the Job"))
            log.info(
                "pass failed, will retry",
                extra={"job": "/".join(key), "error": error.message, "wait_s": round(again, 2)},
            )
        except Exception as error:  # whatever one Job makes us stumble over must not stop the others
            cause = _first(error)
            refusal = Refusal(reason=type(cause).__name__, message=str(cause))
            result, again = PassResult.ERROR, self._after_failure(key, refusal)
            log.exception("pass failed unexpectedly", extra={"job": "/".join(key), "wait_s": round(again, 2)})
            if (record := self.view.job(key)) is not None:
                sentence = f"the operator stumbles over this Job and tries again: {type(cause).__name__}: {cause}"
                self._observer.event(record, EventNote(type="Warning", reason="PassFailed", message=sentence))
        finally:
            self.oldest_pass.pop(key, None)
            self._bound.pop(key, None)
            took = perf_counter() - began
            self._observer.pass_ended(result, took)
            if log.isEnabledFor(logging.DEBUG):
                later = {} if again is None else {"again_s": round(again, 2)}
                log.debug("pass", extra={"job": "/".join(key), "result": result, "took_s": round(took, 4), **later})
            # Nothing is remembered of a Job that is gone, and there would be no end to it.
            spacing = self._pace.take(steady(), pods=self.view.count_pods(key))
            self.queue.done(key, spacing_s=spacing if key in self.view.jobs else 0.0)
            if again is not None and (key in self.view.jobs or self._commands.waiting(key)):
                self.queue.stats.retries += result is PassResult.ERROR
                self.queue.add_after(key, again)
            self.quiet.done(key)

    async def _pass(self, key: Key) -> float | None:
        record = self.view.job(key)
        if record is None:
            if await self._commands.drop(key, is_known=self.view.find_job):
                self.queue.add(key)
            return None
        memory = self._memories.get(key)
        if memory is None or memory.uid != record.uid:
            memory = self._memories[key] = JobMemory(uid=record.uid)
        await self._claim(record, memory)
        again = await self._reconciler.look(key, memory)
        return earliest(again, _COMMAND_CAP_S) if memory.stuck else again

    async def _claim(self, record: JobRecord, memory: JobMemory) -> None:
        """Take the Job's Commands; one that may not be deleted waits, and keeps the Job from nothing else."""
        memory.stuck = False
        try:
            await self._commands.claim(record, memory)
        except ApiError as error:
            refusal = judge(error, action=f"Command {self._commands.waiting(record.key)[0].name} waits to be deleted")
            if refusal.transient:
                raise
            memory.stuck = True
            self._observer.event(
                record, EventNote(type="Warning", reason="CommandWaits", message=f"{refusal.reason}: {refusal.message}")
            )

    def _is_called(self, key: Key) -> bool:
        """Return whether a Command waits for the end of the pass that is under way."""
        memory = self._memories.get(key)
        return bool(self._commands.waiting(key)) and not (memory is not None and memory.stuck)

    def _owes(self, key: Key) -> bool:
        """Return whether somebody waits for a Command; one that is deleted already is known to this process alone."""
        memory = self._memories.get(key)
        return self._is_called(key) or (memory is not None and bool(memory.commands))

    def _goes_on(self, key: Key) -> None:
        """Take a long pass for a new one: it has come on, and is not stuck."""
        self.oldest_pass[key] = steady()

    def _after_failure(self, key: Key, refusal: Refusal) -> float:
        count = self._failed[key] = self._failed.get(key, 0) + 1
        delay = wait_after(refusal, attempt=count - 1, chance=random.random())
        return min(delay, _COMMAND_CAP_S) if self._owes(key) else delay


def _first(error: Exception) -> Exception:
    """Return the error itself; of those that came from tasks side by side the first, which says what it is about."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error

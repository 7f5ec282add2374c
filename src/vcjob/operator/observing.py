"""What is told to the world about what the controller did: Events for people, metrics for machines."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from vcjob.api.job import Phase
from vcjob.api.names import BATCH_API_VERSION, BUS_API_VERSION, COMMAND_KIND, JOB_KIND
from vcjob.controller.engine import Engine
from vcjob.controller.jobs import JobRecord
from vcjob.controller.observer import PassResult
from vcjob.controller.requests import CommandRequest
from vcjob.kube.clock import steady
from vcjob.kube.events import EventRecorder, ObjectRef
from vcjob.kube.lease import LeaseElector
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.status import Status

from .metrics import Metrics
from .tracing import Tracing

__all__ = ("Observing", "read_gauges")

_NO_SPAN: Final = nullcontext()
_NAME: Final = "job"  # the queue's and controller's name in metrics


class Observing:
    """Turns what happened into Events and counters."""

    def __init__(self, *, metrics: Metrics, recorder: EventRecorder, tracing: Tracing | None = None) -> None:
        self._metrics = metrics
        self._tracing = tracing
        self._recorder = recorder
        for result in PassResult:  # at zero from the start, so that the first of a kind shows as a rise
            metrics.reconciles.labels(_NAME, result)
        metrics.reconcile_errors.labels(_NAME)

    def pass_began(self, waited_s: float) -> None:
        """Note how long a Job waited for its pass."""
        self._metrics.queue_time.labels(_NAME).observe(waited_s)

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[Any]:
        """Return what a pass is to take place in: its span, if there are traces."""
        return _NO_SPAN if self._tracing is None else self._tracing.span_of_pass(key)

    def pass_ended(self, result: PassResult, took_s: float) -> None:
        """Count a pass."""
        self._metrics.reconciles.labels(_NAME, result).inc()
        self._metrics.reconcile_time.labels(_NAME).observe(took_s)
        self._metrics.work_time.labels(_NAME).observe(took_s)
        if result is PassResult.ERROR:
            self._metrics.reconcile_errors.labels(_NAME).inc()

    def event(self, record: JobRecord, note: EventNote) -> None:
        """Record an Event on the Job."""
        self._recorder.record(_reference(record), note.type, note.reason, note.message)

    def command_dropped(self, request: CommandRequest) -> None:
        """Record an Event on a Command that is gone and was for a Job that does not exist."""
        command = ObjectRef(
            api_version=BUS_API_VERSION,
            kind=COMMAND_KIND,
            namespace=request.namespace,
            name=request.name,
            uid=request.uid,
        )
        message = f"there is no Job {request.target} for {request.action or 'no action'}; the Command is dropped"
        self._recorder.record(command, "Warning", "CommandIgnored", message)

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None:
        """Count a Job that has ended; called once its status is written."""
        labels = (f"{record.namespace}/{record.name}", record.revision.job.spec.queue)
        if new.phase is Phase.COMPLETED:
            self._metrics.completed.labels(*labels).inc()
        elif new.phase is Phase.FAILED:
            self._metrics.failed.labels(*labels).inc()

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None:
        """Count Pods that have been created `latency_s` after their Job."""
        self._metrics.pods_created.inc(count)
        for _ in range(count):
            self._metrics.pod_creation.observe(latency_s * 1000.0)

    def job_gone(self, record: JobRecord) -> None:
        """Drop the series of a Job that is no more."""
        self._metrics.forget_job(record.namespace, record.name, record.revision.job.spec.queue)


def _reference(record: JobRecord) -> ObjectRef:
    return ObjectRef(
        api_version=BATCH_API_VERSION,
        kind=JOB_KIND,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        resource_version=str(record.version),
    )


def read_gauges(
    engine: Engine, elector: LeaseElector | None, recorder: EventRecorder
) -> Iterator[tuple[str, str, dict[str, str], float]]:
    """Yield what is read at each scrape: (name, help, labels, value)."""
    queue, named = engine.queue, {"name": _NAME}
    yield "workqueue_depth", "Jobs waiting for a pass.", named, len(queue)
    yield "workqueue_adds_total", "Times a Job was marked as worth a look.", named, queue.stats.adds
    yield "workqueue_retries_total", "Times a Job was put off because its pass had failed.", named, queue.stats.retries
    running = [steady() - began for began in engine.oldest_pass.values()]
    yield "workqueue_unfinished_work_seconds", "Age of all passes under way together.", named, sum(running)
    yield (
        "workqueue_longest_running_processor_seconds",
        "Age of the longest pass under way.",
        named,
        max(running, default=0.0),
    )
    yield "controller_runtime_active_workers", "Passes under way.", {"controller": _NAME}, len(running)
    yield "workqueue_oldest_seconds", "Age of the longest waiting Job.", named, queue.oldest_s
    yield "vcjob_limiter_limit", "Requests that may be in flight.", {}, engine.limiter.limit
    yield "vcjob_limiter_in_flight", "Requests in flight.", {}, engine.limiter.in_flight
    yield "vcjob_limiter_paused_seconds", "Until the server lets itself be asked again.", {}, engine.limiter.paused_s
    phases: dict[str, int] = {}
    for record in engine.view.jobs:
        phase = str(record.status.phase or "New")
        phases[phase] = phases.get(phase, 0) + 1
    for phase, count in sorted(phases.items()):
        yield "vcjob_jobs", "Jobs by phase.", {"phase": phase}, count
    for kind, informer in (("pods", engine.view.pods), ("podgroups", engine.view.groups)):
        if informer is not None:
            yield (
                "vcjob_watch_age_seconds",
                "Since the watch was last heard.",
                {"kind": kind},
                steady() - informer.last_heard,
            )
            yield "vcjob_watch_relists", "Lists after the first.", {"kind": kind}, informer.relists
            stats = informer.stats
            yield "vcjob_watch_events_total", "Objects that the watch told of.", {"kind": kind}, stats.events
            yield "vcjob_watch_bookmarks_total", "Bookmarks of the watch.", {"kind": kind}, stats.bookmarks
            yield "vcjob_watch_failures_total", "Lists and watches that failed.", {"kind": kind}, stats.failures
            yield "vcjob_watch_unreadable_total", "Objects passed over.", {"kind": kind}, stats.undecodable
            yield "vcjob_store_objects", "Objects known.", {"kind": kind}, len(informer.store)
    yield "vcjob_events_waiting", "Events that wait to be sent.", {}, recorder.waiting
    yield "vcjob_events_sent_total", "Events sent, repeats with the first.", {}, recorder.stats.sent
    yield "vcjob_events_dropped_total", "Events that were given up.", {}, recorder.stats.dropped
    yield "vcjob_tasks", "Tasks of the event loop.", {}, len(asyncio.all_tasks())
    if elector is not None:
        yield "vcjob_leading", "1 while this process leads.", {}, float(elector.is_leader)

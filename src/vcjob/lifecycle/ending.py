"""How a running Job ends by itself. Pure; the rules of spec "end decision" in the order in which they apply."""

from dataclasses import dataclass

from vcjob.api.job import JobSpec, Phase

from .counters import Counters
from .pod import SUCCEEDED

__all__ = ("Ending", "decide_ending")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The phase that follows, and why."""

    phase: Phase
    reason: str
    message: str


def decide_ending(spec: JobSpec, counters: Counters, *, min_available: int) -> Ending | None:
    """Return how the Job ends, or that it falls back to Pending; None while it goes on.

    `min_available` is the Job's effective minimum.
    """
    replicas = spec.total_replicas
    if replicas == 0:
        return None
    least = spec.min_success
    done, failed = counters.succeeded, counters.failed
    if least is not None and done >= least:
        return _completed(f"{done} of {replicas} Pods succeeded, minSuccess is {least}")
    if done + failed >= replicas:
        return _decide_all_finished(spec, counters, min_available=min_available)
    if counters.pending > replicas - min_available:
        message = f"{counters.pending} of {replicas} Pods are pending, fewer than minAvailable {min_available} are left"
        return Ending(phase=Phase.PENDING, reason="PodsPending", message=message)
    return None


def _decide_all_finished(spec: JobSpec, counters: Counters, *, min_available: int) -> Ending:
    replicas, done = spec.total_replicas, counters.succeeded
    least = spec.min_success
    summary = f"{done} of {replicas} Pods succeeded, {counters.failed} failed"
    if min_available >= sum(task.effective_min_available for task in spec.tasks):
        for task in spec.tasks:
            counts = counters.tasks.get(task.name)
            if counts is None or task.min_available is None:
                continue
            if (succeeded := counts.get(SUCCEEDED, 0)) < task.min_available:
                needs = f"task {task.name} needs {task.min_available} succeeded Pods and has {succeeded}"
                return _failed(f"{summary}; {needs}")
    if least is not None and done < least:
        return _failed(f"{summary}; minSuccess is {least}")
    if done >= min_available:
        return _completed(summary)
    return _failed(f"{summary}; minAvailable is {min_available}")


def _completed(message: str) -> Ending:
    return Ending(phase=Phase.COMPLETED, reason="PodsSucceeded", message=message)


def _failed(message: str) -> Ending:
    return Ending(phase=Phase.FAILED, reason="PodsFailed", message=message)

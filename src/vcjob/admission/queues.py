"""Whether a Queue takes a Job. Pure; the caller looks the Queue up."""

from collections.abc import Mapping
from typing import Any

from vcjob.api.queue import ROOT_QUEUE, QueueState

from .problem import Problem, Severity
from .raw import mapping, text

__all__ = ("check_queue",)


def check_queue(queue: Mapping[str, Any] | None, name: str, *, children: int = 0) -> Problem | None:
    """Return why no Job may be submitted to the Queue of that name.

    `queue` is the raw Queue, None when there is none; `children` counts the Queues that have it as their parent. A
    Queue without a state counts as open: nothing but a queue controller would write one.
    """
    if name == ROOT_QUEUE:
        return _refused(name, "can not submit job to root queue")
    if queue is None:
        return _refused(name, f"unable to find job queue: {name}; create it, or choose one of `kubectl get queues`")
    state = text(mapping(queue, "status"), "state")
    if state not in ("", QueueState.OPEN):
        message = f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`"
        return _refused(name, message)
    if children:
        return _refused(name, f"can only submit job to leaf queue, queue `{name}` has {children} child queues")
    return None


def _refused(name: str, message: str) -> Problem:
    return Problem(field="spec.queue", value=name, message=message, severity=Severity.REFUSED)

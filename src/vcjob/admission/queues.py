"""Whether a Queue takes a Job or a PodGroup. Pure; the caller looks the Queue up.

A Queue without a state counts as open: nothing but a queue controller would write one.
"""

from collections.abc import Mapping
from typing import Any

from vcjob.api.queue import ROOT_QUEUE, QueueState

from .problem import Problem, refused
from .raw import mapping, text

__all__ = ("check_group_queue", "check_queue")

Raw = Mapping[str, Any]


def check_queue(queue: Raw | None, name: str, *, children: int = 0) -> Problem | None:
    """Return why no Job may be submitted to the Queue of that name.

    `queue` is the raw Queue, None when there is none; `children` counts the Queues that have it as their parent.
    """
    if name == ROOT_QUEUE:
        return _refused(name, "can not submit job to root queue")
    if queue is None:
        return _refused(name, f"unable to find job queue: {name}; create it, or choose one of `kubectl get queues`")
    if closed := _closed(queue):
        message = f"can only submit job to queue with state `Open`, queue `{name}` status is `{closed}`"
        return _refused(name, message)
    if children:
        return _refused(name, f"can only submit job to leaf queue, queue `{name}` has {children} child queues")
    return None


def check_group_queue(queue: Raw | None, name: str, *, of_job: bool) -> Problem | None:
    """Return why no PodGroup may be submitted to the Queue of that name.

    A Job was judged when it was made. Its group is made anew at each restart, and a Queue that closes lets what it has
    come to its end, so the group of a Job (`of_job`) is let in whatever the state is.
    """
    if queue is None:
        return _refused(name, f"unable to find queue: {name}; create it, or choose one of `kubectl get queues`")
    if not of_job and (closed := _closed(queue)):
        message = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{closed}`"
        return _refused(name, message)
    return None


def _closed(queue: Raw) -> str:
    """Return the state of a Queue that is not open."""
    state = text(mapping(queue, "status"), "state")
    return "" if state == QueueState.OPEN else state


def _refused(name: str, message: str) -> Problem:
    return refused("spec.queue", name, message=message)

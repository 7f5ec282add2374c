"""Which tasks may start: `dependsOn`. Pure."""

from collections.abc import Iterable, Mapping

from vcjob.api.job import Task

from .pod import RUNNING, SUCCEEDED, Pod
from .revision import CompiledTask

__all__ = ("count_ready", "find_unready")


def count_ready(pods: Iterable[Pod]) -> dict[str, int]:
    """Return for each task how many Pods have succeeded, or run with every container ready."""
    ready: dict[str, int] = {}
    for pod in pods:
        if pod.deleted is None and (pod.phase == SUCCEEDED or (pod.phase == RUNNING and pod.ready)):
            ready[pod.task] = ready.get(pod.task, 0) + 1
    return ready


def find_unready(task: Task, *, tasks: Mapping[str, CompiledTask], ready: Mapping[str, int]) -> tuple[str, ...]:
    """Return the tasks that `task` still waits for; empty when it may start. `tasks` are all of the Job, by name.

    With `iteration: any` and several names one ready task is enough; otherwise all must be ready. A task is ready when
    as many Pods as its minimum are; a task without `minAvailable` needs all its replicas. Unknown names never get ready
    (admission refuses them).
    """
    depends = task.depends_on
    if depends is None or not depends.name:
        return ()

    def is_ready(name: str) -> bool:
        other = tasks.get(name)
        return other is not None and ready.get(name, 0) >= other.task.effective_min_available

    unready = tuple(name for name in depends.name if not is_ready(name))
    if depends.iteration == "any" and len(depends.name) > 1 and len(unready) < len(depends.name):
        return ()
    return unready

"""The graph of `dependsOn`. Pure.

A task that waits for a task that is not there, for itself or for one that waits for it can never start.
"""

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from vcjob.api.job import Task

from .problem import Problem, refused

__all__ = ("check_dependencies", "find_cycle")

NOT_A_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
ITERATIONS = ("", "all", "any")


def find_cycle(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return the names along a circle of tasks that wait for each other, the first one again at the end; or nothing."""
    graph = {task.name: task.depends_on.name for task in tasks if task.depends_on}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def check_dependencies(tasks: Sequence[Task]) -> Iterator[Problem]:
    """Yield what is wrong with the dependencies between the tasks of a Job."""
    names = {task.name for task in tasks}
    for index, task in enumerate(tasks):
        if task.depends_on is None:
            continue
        field = f"spec.tasks[{index}].dependsOn"
        for name in task.depends_on.name:
            if name not in names:
                message = f"{NOT_A_DAG}: task {task.name} waits for {name}, and no task of the job has that name"
                yield Problem(field=f"{field}.name", value=name, message=message)
        if task.depends_on.iteration not in ITERATIONS:
            # Whatever else it is counts as all.
            yield refused(f"{field}.iteration", task.depends_on.iteration, message="iteration must be any or all")
    if cycle := find_cycle(tasks):
        message = f"{NOT_A_DAG}: {' waits for '.join(cycle)}"
        yield Problem(field="spec.tasks", value=None, message=message)

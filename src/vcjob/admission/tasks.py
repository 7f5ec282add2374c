"""Tasks, their numbers and partitions, and the numbers of the Job as a whole. Pure."""

from collections.abc import Iterator

from vcjob.api.job import Job, Task
from vcjob.api.topology import NetworkTopology

from .names import check_pod_names
from .policies import check_policies
from .problem import Problem, refused
from .templates import check_template

__all__ = ("check_partition", "check_tasks", "check_topology", "check_totals")


def check_tasks(job: Job) -> Iterator[Problem]:
    """Yield what is wrong with each task; a repeated name ends the search, as in Volcano."""
    names: set[str] = set()
    for index, task in enumerate(job.spec.tasks):
        field = f"spec.tasks[{index}]"
        if task.min_available is not None and task.min_available > task.replicas:
            message = (
                f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job.name}; lower it to "
                f"{task.replicas} or raise replicas"
            )
            yield Problem(field=f"{field}.minAvailable", value=task.min_available, message=message)
        if task.name in names:
            yield Problem(field=f"{field}.name", value=task.name, message=f"duplicated task name {task.name}")
            return
        names.add(task.name)
        yield from check_policies(task.policies, field=f"{field}.policies")
        yield from check_pod_names(job, task, index=index)
        yield from check_template(task, index=index)
        yield from check_partition(task, index=index)


def check_totals(job: Job) -> Iterator[Problem]:
    """Yield a problem when the Job needs more Pods than all its tasks have."""
    total = job.spec.total_replicas
    if total < job.spec.min_available:
        message = f"job 'minAvailable' should not be greater than total replicas in tasks, which is {total}"
        yield Problem(field="spec.minAvailable", value=job.spec.min_available, message=message)
    if job.spec.min_success is not None and job.spec.min_success > total:
        message = f"job 'minSuccess' should not be greater than total replicas in tasks, which is {total}"
        yield refused("spec.minSuccess", job.spec.min_success, message=message)


def check_partition(task: Task, *, index: int) -> Iterator[Problem]:
    """Yield what is wrong with the partitions of a task; the operator itself would only number them oddly."""
    policy = task.partition_policy
    if policy is None:
        return
    field = f"spec.tasks[{index}].partitionPolicy"
    for name, value in (("totalPartitions", policy.total_partitions), ("partitionSize", policy.partition_size)):
        if value <= 0:
            message = f"'{name}' must be greater than 0 in task: {task.name}"
            yield refused(f"{field}.{name}", value, message=message)
    product = policy.total_partitions * policy.partition_size
    if task.replicas != product:
        message = (
            f"'replicas' must be equal to 'totalPartitions' x 'partitionSize' in task: {task.name}, which is {product}"
        )
        yield refused(f"spec.tasks[{index}].replicas", task.replicas, message=message)
    least = policy.min_partitions * policy.partition_size
    if task.min_available is not None and policy.min_partitions > 0 and least != task.min_available:
        message = (
            f"'minAvailable' must be equal to 'minPartitions' x 'partitionSize' in task: {task.name}, which is {least}"
        )
        yield refused(f"spec.tasks[{index}].minAvailable", task.min_available, message=message)
    yield from check_topology(policy.network_topology, field=f"{field}.networkTopology")


def check_topology(topology: NetworkTopology | None, *, field: str) -> Iterator[Problem]:
    """Yield a problem when the highest tier is given twice."""
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        message = "highestTierAllowed and highestTierName must not be specified simultaneously"
        yield refused(f"{field}.highestTierName", topology.highest_tier_name, message=message)

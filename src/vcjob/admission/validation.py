"""May this Job be created; may it be changed so; can it work at all? Pure; never raises, whatever is in the objects.

Called by the webhook for requests, and by the controller (`find_fatal`) for every Job, so that a cluster without
webhooks is safe. Messages keep the words that users of Volcano know, and name field, value and rule. The Queue is
looked up by the caller: see `check_queue`.
"""

from collections.abc import Iterator
from typing import Any, Final

from vcjob.api.base import InvalidObject, parse
from vcjob.api.duration import InvalidDuration, parse_duration
from vcjob.api.job import Job

from .change import check_change, is_same_spec
from .defaulting import effective_job
from .dependencies import check_dependencies
from .metadata import check_metadata
from .names import check_job_name
from .plugins import check_plugins, plugin_warnings
from .policies import check_policies, policy_warnings
from .problem import Problem, Severity, denial, refused
from .queues import check_queue
from .raw import mapping
from .tasks import check_tasks, check_topology, check_totals
from .volumes import check_claims, check_claims_are_new, check_mounts

__all__ = (
    "Problem",
    "Severity",
    "check_queue",
    "denial",
    "find_fatal",
    "validate_create",
    "validate_update",
    "warnings",
)


WARNINGS_SHOWN: Final = 20  # the API server hands on 4 KiB of them


def validate_create(raw: dict[str, Any]) -> tuple[Problem, ...]:
    """Return why the Job may not be created; nothing when it may, as far as its Queue takes it."""
    job = _read(raw)
    if isinstance(job, Problem):
        return (job,)
    return (*check_metadata(mapping(raw, "metadata")), *_problems(job), *check_claims_are_new(job.spec.volumes))


def validate_update(old: dict[str, Any], new: dict[str, Any]) -> tuple[Problem, ...]:
    """Return why the Job may not be changed from `old` to `new`.

    What leaves the spec alone is always allowed, whatever the spec is: finalizers and labels must stay writable.
    """
    if is_same_spec(old, new):
        return ()
    job = _read(new)
    return (job,) if isinstance(job, Problem) else tuple(check_change(old, new, job=job))


def find_fatal(raw: dict[str, Any]) -> str:
    """Return why a Job that is in the cluster can never work; empty when it can."""
    job = _read(raw)
    if isinstance(job, Problem):
        return str(job)
    return denial(problem for problem in _problems(job) if problem.severity is Severity.FATAL)


def warnings(raw: dict[str, Any]) -> tuple[str, ...]:
    """Return what is odd about the Job but allowed, one sentence each."""
    job = _read(raw)
    if isinstance(job, Problem):
        return ()
    found = tuple(_warnings(job))
    more = len(found) - WARNINGS_SHOWN
    return found if more <= 0 else (*found[:WARNINGS_SHOWN], f"and {more} more warnings")


def _read(raw: dict[str, Any]) -> Job | Problem:
    """Return the Job with its defaults, or why it cannot be read."""
    try:
        return parse(Job, effective_job(raw))
    except InvalidObject as error:
        value = error.value if isinstance(error.value, str | int | float) else None
        return Problem(field=error.field, value=value, message=error.problem)


def _problems(job: Job) -> Iterator[Problem]:
    spec = job.spec
    if not spec.tasks:
        yield Problem(field="spec.tasks", value=None, message="No task specified in job spec")
        return
    yield from check_topology(spec.network_topology, field="spec.networkTopology")
    yield from check_tasks(job)
    yield from check_job_name(job)
    yield from check_totals(job)
    yield from check_policies(spec.policies, field="spec.policies")
    yield from check_plugins(job)
    yield from check_claims(spec.volumes)
    yield from check_mounts(job)
    yield from check_dependencies(spec.tasks)
    if spec.running_estimate is not None:
        try:
            parse_duration(spec.running_estimate)
        except InvalidDuration as error:
            yield refused("spec.runningEstimate", None, message=str(error))


def _warnings(job: Job) -> Iterator[str]:
    spec = job.spec
    yield from policy_warnings(spec.policies, field="spec.policies")
    for index, task in enumerate(spec.tasks):
        field = f"spec.tasks[{index}]"
        yield from policy_warnings(task.policies, field=f"{field}.policies")
        if not task.replicas:
            yield f"{field}: task {task.name} has no replicas, so no Pod is made for it"
        if task.depends_on and task.depends_on.name and spec.min_available >= spec.total_replicas:
            yield (
                f"{field}.dependsOn: a gang scheduler places the first Pod only when all {spec.min_available} Pods of "
                f"minAvailable can be placed, and task {task.name} is made later; lower spec.minAvailable"
            )
    yield from plugin_warnings(job)

"""What may change in a Job that lives: its size and its priority. Pure; never raises.

Everything else would leave Pods, objects and group of different revisions side by side. The first stage with a problem
ends the search, as in Volcano.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from vcjob.api.job import Job
from vcjob.api.names import DEFAULT_SCHEDULER
from vcjob.api.quantity import InvalidQuantity, parse_quantity

from .defaulting import effective_job
from .names import check_pod_names
from .problem import Problem, refused
from .raw import integer, items, mapping, text
from .tasks import check_partition, check_topology

__all__ = ("check_change", "is_same_spec")

Raw = dict[str, Any]

# Sizes are compared as amounts where a typed client would: 1 and "1000m" are one amount of CPU.
AMOUNTS: Final = frozenset(("requests", "limits", "overhead", "capacity", "allocatedResources"))
# Objects that a typed client writes out though they are empty.
WRITTEN_EMPTY: Final = frozenset(
    ("metadata", "resources", "labels", "annotations", "nodeSelector", "plugins", *AMOUNTS)
)


def is_same_spec(old: Raw, new: Raw) -> bool:
    """Whether nothing in the spec has changed."""
    return _difference(mapping(old, "spec"), mapping(new, "spec"), path="spec") is None


def check_change(old: Raw, new: Raw, *, job: Job) -> Iterator[Problem]:
    """Yield the problems of the first stage that has some; `job` is the new one, parsed."""
    stages: tuple[Callable[[], Iterator[Problem]], ...] = (
        lambda: _check_sizes(job),
        lambda: check_topology(job.spec.network_topology, field="spec.networkTopology"),
        lambda: _check_fixed(old, new),
        lambda: _check_names(old, job),
    )
    for stage in stages:
        if found := tuple(stage()):
            yield from found
            return


def _check_sizes(job: Job) -> Iterator[Problem]:
    for index, task in enumerate(job.spec.tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            message = f"'minAvailable' must be <= 'replicas' in task: {task.name}; change both together"
            yield Problem(field=f"spec.tasks[{index}].minAvailable", value=task.min_available, message=message)
        yield from check_partition(task, index=index)
    total = job.spec.total_replicas
    if job.spec.min_available > total:
        message = f"job 'minAvailable' must not be greater than total replicas, which is {total}"
        yield Problem(field="spec.minAvailable", value=job.spec.min_available, message=message)


def _check_fixed(old: Raw, new: Raw) -> Iterator[Problem]:
    before, after = mapping(old, "spec"), mapping(new, "spec")
    count = len(items(before, "tasks")), len(items(after, "tasks"))
    if count[0] != count[1]:
        message = f"job updates may not add or remove tasks; there were {count[0]}"
        yield Problem(field="spec.tasks", value=count[1], message=message)
        return
    # Whoever applies a manifest again leaves out what the webhook has filled in.
    scheduler = text(before, "schedulerName") or DEFAULT_SCHEDULER
    path = _difference(_fixed(_filled(old, scheduler)), _fixed(_filled(new, scheduler)), path="spec")
    if path is not None:
        message = (
            "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and "
            "`PriorityClassName`; make a new job instead"
        )
        yield refused(path, None, message=message)


def _check_names(old: Raw, job: Job) -> Iterator[Problem]:
    """Yield a problem when a task has grown until the name of its last Pod is too long."""
    before = items(mapping(old, "spec"), "tasks")
    for index, task in enumerate(job.spec.tasks):
        if task.replicas > (integer(before[index], "replicas") or 0 if index < len(before) else 0):
            yield from check_pod_names(job, task, index=index)


def _filled(raw: Raw, scheduler: str) -> Raw:
    spec = mapping(effective_job(raw), "spec")
    return {**spec, "schedulerName": text(spec, "schedulerName") or scheduler}


def _fixed(spec: Mapping[str, Any]) -> Raw:
    """Return the part of a spec that stays for life."""
    kept = {name: value for name, value in spec.items() if name not in ("minAvailable", "priorityClassName")}
    kept["tasks"] = [_without(task, "replicas", "minAvailable") for task in items(spec, "tasks")]
    # The operator fills in the name of a claim that it has made.
    kept["volumes"] = [
        _without(volume, "volumeClaimName") if mapping(volume).get("volumeClaim") is not None else volume
        for volume in items(spec, "volumes")
    ]
    return kept


def _without(value: Any, *names: str) -> Any:
    return {k: v for k, v in value.items() if k not in names} if isinstance(value, dict) else value


def _difference(old: Any, new: Any, *, path: str, as_amount: bool = False) -> str | None:
    """Return the path of the first place where two values mean something different."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            is_amount = path.rpartition(".")[2] in AMOUNTS
            before, after = _meant(old.get(name), name), _meant(new.get(name), name)
            if found := _difference(before, after, path=f"{path}.{name}", as_amount=is_amount):
                return found
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            if found := _difference(before, after, path=f"{path}[{index}]"):
                return found
        return None
    if as_amount:
        return None if _is_same_amount(old, new) else path
    return None if type(old) is type(new) and old == new else path


def _meant(value: Any, name: str) -> Any:
    """Return None for what means the same as an absent field."""
    if value == [] or (value == {} and name in WRITTEN_EMPTY):
        return None
    return value


def _is_same_amount(old: Any, new: Any) -> bool:
    try:
        return parse_quantity(old) == parse_quantity(new)
    except InvalidQuantity:
        return bool(old == new)

"""What a group needs at least: `minResources`. Pure; spec section 5.1.

The sum of the quota usage of the Pods that make up the minimum, taken from the tasks in order of priority. Requests
that a container leaves out follow from its limits, as the API server would set them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vcjob.api.job import Job, Task
from vcjob.api.quantity import InvalidQuantity, Quantity, parse_quantity

__all__ = ("min_resources", "pod_usage", "same_resources")

Amounts = dict[str, Quantity]
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_ONE = Quantity(nano=10**9)

# The sums follow from the Job's spec and are asked for in every pass; they are half of its cost.
_MEMO_MAX = 4096  # Jobs
_memo: dict[str, tuple[Job, int, Mapping[str, int], dict[str, str]]] = {}  # by the Job's UID


def min_resources(job: Job, *, minimum: int, priorities: Mapping[str, int]) -> dict[str, str]:
    """Return the resources of the `minimum` first Pods; empty when none is needed."""
    known = _memo.get(job.uid)
    if known is not None and known[0] is job and known[1:3] == (minimum, priorities):
        return known[3]
    found = _min_resources(job, minimum=minimum, priorities=priorities)
    if len(_memo) >= _MEMO_MAX:
        _memo.clear()
    _memo[job.uid] = (job, minimum, priorities, found)
    return found


def _min_resources(job: Job, *, minimum: int, priorities: Mapping[str, int]) -> dict[str, str]:
    total: Amounts = {}
    for task, count in _pick(job, minimum=minimum, priorities=priorities):
        for name, amount in pod_usage(task).items():
            _add(total, name, amount * count)
    return {name: str(amount) for name, amount in total.items()}


def same_resources(wanted: Mapping[str, str], have: object) -> bool:
    """Return whether two resource lists mean the same amounts, however they are written."""
    if not isinstance(have, Mapping) or wanted.keys() != have.keys():
        return False
    return all(amount == have[name] or _read(amount) == _read(have[name]) for name, amount in wanted.items())


def pod_usage(task: Task) -> Amounts:
    """Return what one Pod of the task counts for in a ResourceQuota."""
    spec = task.pod_spec
    usage: Amounts = {"pods": _ONE, "count/pods": _ONE}
    for name, amount in _effective(spec, "requests").items():
        if name in _NATIVE or name.startswith("hugepages-") or "/" in name:
            usage[name] = amount
            usage[f"requests.{name}"] = amount
    for name, amount in _effective(spec, "limits").items():
        if name in _NATIVE:
            usage[f"limits.{name}"] = amount
    return usage


def _pick(job: Job, *, minimum: int, priorities: Mapping[str, int]) -> list[tuple[Task, int]]:
    """Return how many Pods of which task make up the minimum."""

    def priority(task: Task) -> int:
        return priorities.get(str(task.pod_spec.get("priorityClassName") or ""), 0)

    tasks = sorted(job.spec.tasks, key=priority, reverse=True)  # stable among equals
    left = minimum
    taken = dict.fromkeys(range(len(tasks)), 0)

    def take(position: int, count: int) -> None:
        nonlocal left
        count = max(0, min(count, left))
        taken[position] += count
        left -= count

    if minimum >= sum(task.effective_min_available for task in tasks):
        for position, task in enumerate(tasks):
            take(position, task.min_available or 0)
    for position, task in enumerate(tasks):
        take(position, task.replicas - taken[position])
    return [(task, taken[position]) for position, task in enumerate(tasks) if taken[position]]


def _effective(spec: Mapping[str, Any], kind: str) -> Amounts:
    """Return a Pod's requests or limits: running containers together, or one init container if that is more."""
    running: Amounts = {}
    for container in _list(spec.get("containers")):
        for name, amount in _of_container(container, kind).items():
            _add(running, name, amount)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in _list(spec.get("initContainers")):
        amounts = _of_container(container, kind)
        if container.get("restartPolicy") == "Always":
            for name, amount in amounts.items():
                _add(running, name, amount)
                _add(sidecars, name, amount)
            continue
        for name, amount in amounts.items():
            at_once = amount + sidecars[name] if name in sidecars else amount
            peak[name] = max(peak.get(name, at_once), at_once)
    for name, amount in peak.items():
        running[name] = max(running.get(name, amount), amount)
    for name, amount in _amounts(spec, "resources", kind).items():  # the Pod's own resources override the sum
        running[name] = amount
    overhead = spec.get("overhead")
    for name, value in (overhead if isinstance(overhead, Mapping) else {}).items():
        if kind == "requests" or name in running:
            _add(running, name, _read(value))
    return running


def _of_container(container: Mapping[str, Any], kind: str) -> Amounts:
    amounts = _amounts(container, "resources", kind)
    return _amounts(container, "resources", "limits") | amounts if kind == "requests" else amounts


def _amounts(owner: Mapping[str, Any], field: str, kind: str) -> Amounts:
    resources = owner.get(field)
    amounts = resources.get(kind) if isinstance(resources, Mapping) else None
    return {name: _read(value) for name, value in amounts.items()} if isinstance(amounts, Mapping) else {}


def _read(value: object) -> Quantity:
    try:
        return parse_quantity(value)
    except InvalidQuantity:  # the API server will refuse the Pod; the group must not stop the operator
        return Quantity(nano=0)


def _add(total: Amounts, name: str, amount: Quantity) -> None:
    total[name] = total[name] + amount if name in total else amount


def _list(value: object) -> Iterable[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else ()

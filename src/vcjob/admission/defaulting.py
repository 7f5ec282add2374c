"""What a Job's spec says where it is silent. Pure; no input is changed, and what stays the same is shared with it.

The webhook writes these values into new Jobs; the controller reads every Job through `effective_job`, so that a Job
that no webhook has seen behaves the same. Only creation is defaulted: later, `minAvailable: 0` means zero.
"""

from collections.abc import Mapping
from typing import Any, Final

from vcjob.api.base import INT32_MAX
from vcjob.api.job import DEFAULT_MAX_RETRY
from vcjob.api.names import DEFAULT_QUEUE, DEFAULT_SCHEDULER
from vcjob.plugins.registry import find_plugin

from .raw import entries, integer, items, mapping

__all__ = ("default_job", "default_patch", "effective_job")

Raw = dict[str, Any]

HOST_NETWORK_DNS: Final = "ClusterFirstWithHostNet"  # without it, Pods on the host's network find no Service
FIELD_ORDER: Final = ("queue", "schedulerName", "maxRetry", "tasks", "minAvailable", "plugins")


def effective_job(raw: Raw) -> Raw:
    """Return the Job as the controller must read it; the input itself when nothing is left to say.

    Which scheduler a Job gets that names none is known to the gang back end.
    """
    spec = mapping(raw, "spec")
    filled = _filled(raw, scheduler=DEFAULT_SCHEDULER)
    if spec.get("minAvailable") == 0 and not filled.keys() - {"minAvailable", "plugins"}:
        # A webhook has been here before, and it never leaves a zero at creation: somebody scaled the Job to zero since.
        filled.pop("minAvailable", None)
    filled.pop("schedulerName", None)
    return _with_spec(raw, filled)


def default_job(raw: Raw, *, scheduler: str = DEFAULT_SCHEDULER) -> Raw:
    """Return a new Job as it is to be stored; the input itself when nothing is left to say.

    `scheduler` is the one that a Job without `schedulerName` gets.
    """
    return _with_spec(raw, _stored(raw, scheduler=scheduler))


def default_patch(raw: Raw, *, scheduler: str = DEFAULT_SCHEDULER) -> tuple[Raw, ...]:
    """Return the difference between a new Job and `default_job` as operations of a JSON patch."""
    spec = mapping(raw, "spec")
    stored = _stored(raw, scheduler=scheduler)
    return tuple(
        {"op": "replace" if name in spec else "add", "path": f"/spec/{name}", "value": stored[name]}
        for name in FIELD_ORDER
        if name in stored
    )


def _stored(raw: Raw, *, scheduler: str) -> Raw:
    filled = _filled(raw, scheduler=scheduler)
    if "tasks" in filled:
        filled["tasks"] = [_written_out(task) for task in filled["tasks"]]
    return filled


def _with_spec(raw: Raw, filled: Raw) -> Raw:
    return {**raw, "spec": {**raw["spec"], **filled}} if filled else raw


def _filled(raw: Raw, *, scheduler: str) -> Raw:
    """Return the fields of the spec that get another value; none where there is no spec."""
    spec = mapping(raw, "spec")
    filled: Raw = {}
    if not spec:
        return filled
    if _is_unset(spec, "queue"):
        filled["queue"] = DEFAULT_QUEUE
    if _is_unset(spec, "schedulerName"):
        filled["schedulerName"] = scheduler
    if _is_unset(spec, "maxRetry"):
        filled["maxRetry"] = DEFAULT_MAX_RETRY
    tasks = items(spec, "tasks")
    filled_tasks = [_filled_task(task, index=index) for index, task in enumerate(tasks)]
    if any(new is not old for new, old in zip(filled_tasks, tasks, strict=True)):
        filled["tasks"] = filled_tasks
    total = sum(integer(task, "minAvailable") or 0 for task in filled_tasks)
    if total and _is_unset(spec, "minAvailable"):
        filled["minAvailable"] = min(total, INT32_MAX)
    plugins = mapping(spec, "plugins")
    if required := _required(plugins):
        filled["plugins"] = {**plugins, **required}
    return filled


def _filled_task(task: Any, *, index: int) -> Any:
    if not isinstance(task, dict):
        return task
    filled: Raw = {}
    if _is_unset(task, "name"):
        filled["name"] = f"default{index}"
    pod = mapping(task, "template", "spec")
    if pod.get("hostNetwork") is True and _is_unset(pod, "dnsPolicy"):
        filled["template"] = {**task["template"], "spec": {**pod, "dnsPolicy": HOST_NETWORK_DNS}}
    if task.get("minAvailable") is None:
        filled["minAvailable"] = _least_members(task)
    if _is_unset(task, "maxRetry"):
        filled["maxRetry"] = DEFAULT_MAX_RETRY
    return {**task, **filled} if filled else task


def _least_members(task: Raw) -> int:
    partition = mapping(task, "partitionPolicy")
    least = integer(partition, "minPartitions") or 0
    members = least * (integer(partition, "partitionSize") or 0) if least > 0 else integer(task, "replicas") or 0
    return min(max(members, 0), INT32_MAX)  # what is out of range is refused where the user wrote it, not here as well


def _required(plugins: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the plugins that those of a Job bring along, with no arguments."""
    added: dict[str, list[str]] = {}
    waiting = [name for name in plugins if isinstance(name, str)]
    while waiting:
        plugin = find_plugin(waiting.pop(0))
        for name in plugin.requires if plugin else ():
            if name not in plugins and name not in added:
                added[name] = []
                waiting.append(name)
    return added


def _written_out(task: Any) -> Any:
    """Add the empty objects that every typed client writes, so that whoever compares finds no difference."""
    template = mapping(task, "template")
    if not template:
        return task
    pod = mapping(template, "spec")
    lists = {
        field: [c if not isinstance(c, dict) or "resources" in c else {**c, "resources": {}} for c in items(pod, field)]
        for field in ("initContainers", "containers")
        if any(True for _ in entries(pod, field))
    }
    return {**task, "template": {"metadata": {}, **template, **({"spec": {**pod, **lists}} if lists else {})}}


def _is_unset(owner: Mapping[str, Any], field: str) -> bool:
    """Whether a field is absent or holds what a typed client cannot tell from absent."""
    value = owner.get(field)
    return value is None or value == "" or (value == 0 and integer(owner, field) == 0)

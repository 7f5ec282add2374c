"""The back end `volcano`: a PodGroup stands for the Job, and its phase lets the Pods be made. Pure; spec section 5."""

from typing import Any, Final

from vcjob.api.job import Job, NetworkTopology, Task
from vcjob.api.names import (
    ANNOTATION_JOB_VERSION,
    LABEL_PARTITION_ID,
    LABEL_TASK_SPEC,
    SCHEDULING_API_VERSION,
)

from .base import Gang, Group, GroupWish
from .resources import min_resources, same_resources

__all__ = ("VolcanoGang",)

_WAITING: Final = ("", "Pending")
# What follows a changed Job; queue, labels and topology are fixed when the group is made, as the scheduler expects.
_FOLLOWED: Final = ("minMember", "minTaskMember", "priorityClassName", "subGroupPolicy")


class VolcanoGang(Gang):
    """PodGroups for the Volcano scheduler."""

    uses_groups = True

    def scheduler_name(self, name: str) -> str:
        return name or self._gang_scheduler_name

    def group_name(self, job: Job) -> str:
        return f"{job.name}-{job.uid}"

    def wanted_group(self, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        metadata: dict[str, Any] = {"name": self.group_name(job), "namespace": job.namespace}
        if job.metadata.labels:
            metadata["labels"] = dict(job.metadata.labels)
        annotations = dict(job.metadata.annotations)
        if wish.job_version:
            # Tells the group of this run from the one of an earlier run that is not gone yet.
            annotations[ANNOTATION_JOB_VERSION] = str(wish.job_version)
        if annotations:
            metadata["annotations"] = annotations
        return {
            "apiVersion": SCHEDULING_API_VERSION,
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": _wanted_spec(job, wish, minimum=job.spec.min_available),
        }

    def changes(self, group: Group, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        wanted = _wanted_spec(job, wish, minimum=_minimum(group, job, wish))
        have = group.spec
        patch: dict[str, Any] = {}
        for field in _FOLLOWED:
            if (wanted.get(field) or None) != (have.get(field) or None):
                patch[field] = wanted.get(field)
        if isinstance(patch.get("minTaskMember"), dict):  # a merge patch must name the tasks that are gone
            gone = set(have.get("minTaskMember") or ()) - set(patch["minTaskMember"])
            patch["minTaskMember"] = patch["minTaskMember"] | dict.fromkeys(gone)
        if not same_resources(wanted["minResources"], have.get("minResources")):
            stale = set(have.get("minResources") or ()) - set(wanted["minResources"])
            patch["minResources"] = wanted["minResources"] | dict.fromkeys(stale)
        return {"spec": patch} if patch else None

    def admits(self, group: Group | None) -> bool:
        return group is not None and not group.deleted and group.phase not in _WAITING


def _minimum(group: Group, job: Job, wish: GroupWish) -> int:
    """Return the group's minimum.

    Pods of a task that waits for another task do not exist yet, so a group that demands them can never be scheduled.
    The full minimum stands as long as the scheduler does not complain; once it says Unschedulable, only what can start
    counts. A lowered minimum grows with what can start and never jumps back while a task still waits.
    """
    full = job.spec.min_available
    if wish.startable is None or wish.startable >= full:
        return full
    have = group.spec.get("minMember")
    lowered = isinstance(have, int) and have < full
    return wish.startable if group.unschedulable or lowered else full


def _wanted_spec(job: Job, wish: GroupWish, *, minimum: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "minMember": minimum,
        "minTaskMember": {task.name: task.effective_min_available for task in job.spec.tasks},
        "queue": job.spec.queue,
        "minResources": min_resources(job, minimum=minimum, priorities=wish.priorities),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if topology := _topology(job.spec.network_topology):
        spec["networkTopology"] = topology
    if subgroups := [_subgroup(task) for task in job.spec.tasks if task.partition_policy]:
        spec["subGroupPolicy"] = subgroups
    return spec


def _subgroup(task: Task) -> dict[str, Any]:
    partition = task.partition_policy
    assert partition is not None
    out: dict[str, Any] = {
        "name": task.name,
        "subGroupSize": partition.partition_size,
        "minSubGroups": partition.min_partitions,
        "labelSelector": {"matchLabels": {LABEL_TASK_SPEC: task.name}},
        "matchLabelKeys": [LABEL_PARTITION_ID],
    }
    if topology := _topology(partition.network_topology):
        out["networkTopology"] = topology
    return out


def _topology(topology: NetworkTopology | None) -> dict[str, Any] | None:
    if topology is None:
        return None
    out: dict[str, Any] = {"mode": topology.mode}
    if topology.highest_tier_allowed is not None:
        out["highestTierAllowed"] = topology.highest_tier_allowed
    elif topology.highest_tier_name:
        out["highestTierName"] = topology.highest_tier_name
    return out

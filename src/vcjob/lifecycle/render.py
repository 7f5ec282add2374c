"""Pods on their way to the API server: template, identity, volumes, and what the plugins add.

Pure. The template's parts are shared by all Pods of a task and never changed; only what differs is made anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vcjob.api.job import Job, Task
from vcjob.api.names import (
    ANNOTATION_COOLDOWN_TIME,
    ANNOTATION_EVICTED_AT,
    ANNOTATION_GROUP_NAME,
    ANNOTATION_JDB_MAX_UNAVAILABLE,
    ANNOTATION_JDB_MIN_AVAILABLE,
    ANNOTATION_JOB_FORWARDING,
    ANNOTATION_JOB_RETRY_COUNT,
    ANNOTATION_JOB_VERSION,
    ANNOTATION_NUMA_POLICY,
    ANNOTATION_OUT_OF_SYNC,
    ANNOTATION_PREEMPTABLE,
    ANNOTATION_REVOCABLE_ZONE,
    ANNOTATION_TEMPLATE_UID,
    LABEL_JOB_NAME,
    LABEL_JOB_NAMESPACE,
    LABEL_PARTITION_ID,
    LABEL_QUEUE_NAME,
    LABEL_TASK_INDEX,
    LABEL_TASK_SPEC,
)
from vcjob.gang.base import Gang
from vcjob.plugins.base import Note, PodDraft

from .census import Member
from .revision import Revision
from .volumes import mount_claims

__all__ = ("PodRenderer", "RenderedPod")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPod:
    """A Pod manifest and what the plugins had to say about it."""

    name: str
    manifest: dict[str, Any]
    notes: tuple[Note, ...]


class PodRenderer:
    """Renders the Pods of one Job revision for one run (version and retry count)."""

    def __init__(
        self, revision: Revision, *, gang: Gang, version: int, retry_count: int, forwarded: bool = False
    ) -> None:
        self._revision = revision
        self._gang = gang
        self._owner = [revision.job.owner_reference()]
        self._run = {ANNOTATION_JOB_VERSION: str(version), ANNOTATION_JOB_RETRY_COUNT: str(retry_count)}
        self._forwarded = forwarded
        self._tasks: dict[str, _TaskMetadata] = {}  # of which there are Pods to render

    def render(self, member: Member) -> RenderedPod:
        """Return the Pod of a member. Raises what a plugin raises."""
        job = self._revision.job
        base = self._tasks.get(member.task) or self._metadata(member.task)
        index = str(member.index)
        labels = base.labels | {LABEL_TASK_INDEX: index}
        annotations = base.annotations | {LABEL_TASK_INDEX: index}
        if (partition := base.task.partition_policy) is not None:
            size = partition.partition_size
            labels[LABEL_PARTITION_ID] = str(member.index // size if size > 0 else 0)
        if member.evicted_at is not None:
            annotations[ANNOTATION_EVICTED_AT] = f"{member.evicted_at:.0f}"
        name = f"{job.name}-{member.task}-{index}"
        draft = PodDraft(name=name, task=base.task, index=member.index, labels=labels, annotations=annotations)
        self._set_scheduling(job, draft)
        mount_claims(job, draft)
        for plugin in self._revision.plugins:
            plugin.on_pod_create(draft)
        metadata = {
            "name": name,
            "namespace": job.namespace,
            "labels": draft.labels,
            "annotations": draft.annotations,
            "ownerReferences": self._owner,
        }
        if finalizers := base.finalizers:
            metadata["finalizers"] = finalizers
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": draft.finished_spec()}
        return RenderedPod(name=name, manifest=manifest, notes=tuple(draft.notes))

    def _metadata(self, task: str) -> "_TaskMetadata":
        made = self._tasks[task] = _TaskMetadata(
            self._revision.job,
            self._revision.by_name[task].task,
            run=self._run,
            group=self._gang.group_name(self._revision.job),
            forwarded=self._forwarded,
        )
        return made

    def _set_scheduling(self, job: Job, draft: PodDraft) -> None:
        spec = draft.spec
        scheduler = self._gang.scheduler_name(str(spec.get("schedulerName") or job.spec.scheduler_name or ""))
        if scheduler:
            spec["schedulerName"] = scheduler
        else:
            spec.pop("schedulerName", None)
        if job.spec.priority_class_name and not spec.get("priorityClassName"):
            spec["priorityClassName"] = job.spec.priority_class_name


# What the operator says of one Pod. A template that was copied from a living Pod has them, and would say it of all.
_MARKS: Final = (ANNOTATION_EVICTED_AT, ANNOTATION_OUT_OF_SYNC)


class _TaskMetadata:
    """Labels and annotations that all Pods of a task share."""

    __slots__ = ("annotations", "finalizers", "labels", "task")

    def __init__(self, job: Job, task: Task, *, run: Mapping[str, str], group: str, forwarded: bool) -> None:
        template = task.template.get("metadata")
        template = template if isinstance(template, dict) else {}
        common = {LABEL_TASK_SPEC: task.name, LABEL_JOB_NAME: job.name, LABEL_QUEUE_NAME: job.spec.queue}
        self.task = task
        self.finalizers: list[str] = template.get("finalizers") or []
        self.labels: dict[str, str] = {**(template.get("labels") or {}), **common, LABEL_JOB_NAMESPACE: job.namespace}
        own = template.get("annotations") or {}
        self.annotations: dict[str, str] = {
            **{key: value for key, value in own.items() if key not in _MARKS},
            **common,
            ANNOTATION_GROUP_NAME: group,
            ANNOTATION_TEMPLATE_UID: f"{job.name}-{task.name}",
            **run,
        }
        if task.topology_policy:
            self.annotations[ANNOTATION_NUMA_POLICY] = task.topology_policy
        given = job.metadata.annotations
        for key in (ANNOTATION_PREEMPTABLE, ANNOTATION_COOLDOWN_TIME, ANNOTATION_REVOCABLE_ZONE):
            if key in given:
                self.annotations[key] = given[key]
        for key in (ANNOTATION_JDB_MIN_AVAILABLE, ANNOTATION_JDB_MAX_UNAVAILABLE):
            if key in given:
                self.annotations[key] = given[key]
                break
        for key in (ANNOTATION_PREEMPTABLE, ANNOTATION_COOLDOWN_TIME):
            if key in job.metadata.labels:
                self.labels[key] = job.metadata.labels[key]
        if forwarded:
            self.annotations[ANNOTATION_JOB_FORWARDING] = self.labels[ANNOTATION_JOB_FORWARDING] = "true"

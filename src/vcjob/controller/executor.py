"""The executor: carries out the steps of a plan, several at a time, and tells the stores what came of it.

Thin: it decides nothing but how a step is sent. Every write takes a slot of the limiter and first makes sure that this
process may still write. Refusals come back as values; a stage stops early when its first refusals show that the rest
would fare no better.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

import msgspec

from vcjob.api.names import ANNOTATION_OUT_OF_SYNC, LABEL_JOB_NAME, SCHEDULING_GROUP
from vcjob.gang.base import Gang, Group
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from vcjob.kube.limiter import FairLimiter
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.pod import Pod
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.steps import (
    AnnotateJob,
    ApplyObject,
    CheckClaim,
    CreateClaim,
    CreateGroup,
    CreatePods,
    DeleteGroup,
    DeleteJob,
    DeleteObject,
    DeletePods,
    PatchGroup,
    PatchJob,
    Stage,
    Step,
)
from vcjob.plugins.base import Note

from .decode import decode_group, decode_pod, decode_uid
from .jobs import JobRecord
from .memory import JobMemory
from .objects import ObjectWriter
from .refusals import Refusal, judge

__all__ = ("Executor", "Report", "Sink")

log = logging.getLogger(__name__)

_IN_FLIGHT: Final = 64  # Pods of one Job that may be on their way; the limiter decides how many really are
_AFTER_REFUSAL: Final = 1  # the first try after a refusal is a single Pod, then 2, 4, 8 ...


_DELETIONS: Final = (DeletePods, DeleteGroup, DeleteObject, DeleteJob)
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Where the answers to writes go."""

    def put(self, item: T_contra) -> None: ...

    def remove(self, key: tuple[str, str], *, uid: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Report:
    """What a stage came to."""

    refusals: list[Refusal] = field(default_factory=list)
    created: int = 0  # Pods
    deleted: int = 0  # Pods
    notes: list[Note] = field(default_factory=list)
    job: dict[str, Any] | None = None  # the Job as it is after a step changed it

    def add(self, other: "Report") -> None:
        """Take in what another report says."""
        self.refusals += other.refusals
        self.created += other.created
        self.deleted += other.deleted
        self.notes += other.notes
        self.job = other.job or self.job


class Executor:
    """Carries out steps."""

    def __init__(
        self,
        api: ApiClient,
        *,
        limiter: FairLimiter,
        pods: Sink[Pod],
        groups: Sink[Group] | None,
        gang: Gang,
        assert_leading: Callable[[], None],
        is_current: Callable[[JobRecord], bool],
    ) -> None:
        self._api = api
        self._limiter = limiter
        self._pods = pods
        self._groups = groups
        self._gang = gang
        self._assert_leading = assert_leading
        self._is_current = is_current
        self._objects = ObjectWriter(api, slot=self._slot)
        self._encode = msgspec.json.Encoder().encode

    async def run_stage(self, record: JobRecord, memory: JobMemory, stage: Stage, *, forwarded: bool) -> Report:
        """Carry out the steps of a stage side by side."""
        reports = [(step, Report()) for step in stage]
        if len(stage) == 1:
            await self._run(record, memory, stage[0], reports[0][1], forwarded=forwarded)
        else:
            async with asyncio.TaskGroup() as group:
                for step, report in reports:
                    name = f"{type(step).__name__} {record.namespace}/{record.name}"
                    group.create_task(self._run(record, memory, step, report, forwarded=forwarded), name=name)
        total = Report()
        for step, report in reports:
            if isinstance(step, _DELETIONS):
                report.refusals = [replace(refusal, deletion=True) for refusal in report.refusals]
            total.add(report)
        return total

    async def write_status(self, record: JobRecord, patch: dict[str, Any]) -> dict[str, Any]:
        """Write the status by a merge patch that fails when the Job has changed; return the Job. Raises ApiError."""
        body = {"metadata": {"resourceVersion": str(record.version), "uid": record.uid}, "status": patch}
        async with self._slot(record):
            answer = await self._api.merge_patch(f"{record.path}/status", body)
        job: dict[str, Any] = msgspec.json.decode(answer)
        return job

    def _slot(self, record: JobRecord) -> "_LeadingSlot":
        return _LeadingSlot(self._limiter, f"{record.namespace}/{record.name}", self._assert_leading)

    async def _run(self, record: JobRecord, memory: JobMemory, step: Step, report: Report, *, forwarded: bool) -> None:
        try:
            match step:
                case CreatePods():
                    await self._create_pods(record, memory, step, report, forwarded=forwarded)
                case DeletePods():
                    await self._delete_pods(record, step, report)
                case ApplyObject():
                    refusal = await self._objects.apply(record, memory, step)
                    report.refusals += [refusal] if refusal else []
                case DeleteObject(ref=ref):
                    await self._objects.delete(record, memory, ref)
                case CreateClaim() | CheckClaim():
                    await self._claim(record, memory, step, report)
                case PatchJob(patch=patch):
                    async with self._slot(record):
                        answer = await self._api.json_patch(record.path, list(patch))
                    report.job = msgspec.json.decode(answer)
                case AnnotateJob(annotations=annotations):
                    body = {"metadata": {"uid": record.uid, "annotations": annotations}}
                    async with self._slot(record):
                        report.job = msgspec.json.decode(await self._api.merge_patch(record.path, body))
                case CreateGroup() | PatchGroup() | DeleteGroup():
                    refusal = await self._group(record, step)
                    report.refusals += [refusal] if refusal else []
                case DeleteJob():
                    async with self._slot(record):
                        await self._api.delete(record.path, uid=record.uid, propagation="Foreground")
        except ApiError as error:
            report.refusals.append(judge(error, action=_describe(step)))

    # Pods

    async def _create_pods(
        self, record: JobRecord, memory: JobMemory, step: CreatePods, report: Report, *, forwarded: bool
    ) -> None:
        renderer = PodRenderer(
            record.revision, gang=self._gang, version=step.version, retry_count=step.retry_count, forwarded=forwarded
        )
        path = f"/api/v1/namespaces/{record.namespace}/pods"

        async def create(member: Member) -> None:
            try:
                rendered = renderer.render(member)
            except Exception as error:  # a plugin may raise anything; it must cost its own Job only
                log.exception(
                    "pod cannot be rendered", extra={"job": record.key, "task": member.task, "index": member.index}
                )
                sentence = (
                    f"a plugin failed for task {member.task}, index {member.index}: {type(error).__name__}: {error}"
                )
                report.refusals.append(Refusal(reason="PluginError", message=sentence))
                return
            report.notes += rendered.notes
            try:
                async with self._slot(record):
                    answer = await self._api.create(path, self._encode(rendered.manifest))
                self._pods.put(decode_pod(answer))
                report.created += 1
            except AlreadyExists:
                await self._look_at_namesake(record, f"{path}/{rendered.name}", report)

        width = _AFTER_REFUSAL if memory.refusals else _IN_FLIGHT
        await self._for_each(step.members, create, report, record=record, width=width, verb="create pods")

    async def _look_at_namesake(self, record: JobRecord, path: str, report: Report) -> None:
        """A Pod of the wanted name is there: ours that the watch has not shown yet, or somebody else's."""
        try:
            async with self._slot(record):
                pod = decode_pod(await self._api.get(path))
        except NotFound as error:  # gone in between: the next plan makes it
            report.refusals.append(Refusal(reason="Conflict", message=error.message, transient=True, conflict=True))
            return
        if pod.owner_uid == record.uid and pod.job == record.name:
            self._pods.put(pod)
        elif pod.owner_uid == record.uid:
            sentence = (
                f"pod {pod.name} has lost its label {LABEL_JOB_NAME}={record.name}; set it again or delete the Pod"
            )
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))
        elif pod.owner_uid and pod.job != record.name:
            sentence = f"pod {pod.name} belongs to Job {pod.job}; rename a Job or one of its tasks"
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))
        elif pod.owner_uid:
            sentence = f"pod {pod.name} belongs to an earlier Job of this name and is not gone yet"
            report.refusals.append(Refusal(reason="OldPodsTerminating", message=sentence))
        else:
            sentence = f"pod {pod.name} exists and does not belong to this Job; delete or rename it"
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))

    async def _delete_pods(self, record: JobRecord, step: DeletePods, report: Report) -> None:
        async def delete(pod: Pod) -> None:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            try:
                if step.mark and not pod.ours:
                    mark = {"metadata": {"uid": pod.uid, "annotations": {ANNOTATION_OUT_OF_SYNC: "true"}}}
                    async with self._slot(record):
                        self._pods.put(decode_pod(await self._api.merge_patch(path, mark)))
                if pod.deleted is not None:
                    return
                async with self._slot(record):
                    answer = await self._api.delete(path, uid=pod.uid)
            except NotFound:
                self._pods.remove(pod.key, uid=pod.uid)
                return
            except Conflict:  # another Pod has its name by now, or the server could not get hold of this one
                if await self._is_there(record, path, uid=pod.uid):
                    raise
                self._pods.remove(pod.key, uid=pod.uid)
                return
            report.deleted += 1
            if _is_gone(answer):
                self._pods.remove(pod.key, uid=pod.uid)
            else:
                self._pods.put(decode_pod(answer))

        await self._for_each(step.pods, delete, report, record=record, width=_IN_FLIGHT, verb="delete pods")

    async def _is_there(self, record: JobRecord, path: str, *, uid: str) -> bool:
        try:
            async with self._slot(record):
                return decode_uid(await self._api.get(path)) == uid
        except NotFound:
            return False

    async def _for_each(
        self,
        todo: Sequence[Any],
        act: Callable[[Any], Awaitable[None]],
        report: Report,
        *,
        record: JobRecord,
        width: int,
        verb: str,
    ) -> None:
        """Act on every item, `width` at a time, doubling after each success up to the limit of one Job.

        Stops handing out items at the first refusal, when the Job is no more or its spec has changed.
        """
        items = iter(todo)
        most = min(_IN_FLIGHT, len(todo))
        width = min(width, most)
        running = 0
        refused = len(report.refusals)

        async def work() -> None:
            nonlocal running, width
            try:
                for item in items:
                    if len(report.refusals) > refused or not self._is_current(record):
                        return
                    try:
                        await act(item)
                    except ApiError as error:
                        report.refusals.append(judge(error, action=f"{verb} ({error.path.rpartition('/')[2]})"))
                        return
                    if width < most:
                        width = min(most, width * 2)
                    while running < width:
                        running += 1
                        group.create_task(work(), name=f"{verb} {record.namespace}/{record.name}")
            finally:
                running -= 1

        async with asyncio.TaskGroup() as group:
            running = 1
            group.create_task(work(), name=f"{verb} {record.namespace}/{record.name}")

    # Other objects

    async def _claim(
        self, record: JobRecord, memory: JobMemory, step: CreateClaim | CheckClaim, report: Report
    ) -> None:
        path = f"/api/v1/namespaces/{record.namespace}/persistentvolumeclaims"
        try:
            if isinstance(step, CheckClaim):
                async with self._slot(record):
                    await self._api.get(f"{path}/{step.name}")
            else:
                manifest = {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": step.name, "ownerReferences": [record.revision.job.owner_reference()]},
                    "spec": step.spec,
                }
                async with self._slot(record):
                    await self._api.create(path, manifest)
        except AlreadyExists:
            # The name is the Job's own (recorded in its spec), so a claim that has it is the one to mount.
            pass
        except NotFound as error:
            if isinstance(step, CreateClaim):
                raise
            sentence = f"claim {step.name} does not exist (spec.volumes); the Job waits for it"
            report.refusals.append(Refusal(reason="ClaimNotFound", message=sentence))
            log.debug("claim not found", extra={"claim": step.name, "error": error.message})
            return
        memory.claims.add(step.name)

    async def _group(self, record: JobRecord, step: CreateGroup | PatchGroup | DeleteGroup) -> Refusal | None:
        assert self._groups is not None
        path = f"/apis/{SCHEDULING_GROUP}/v1beta1/namespaces/{record.namespace}/podgroups"
        match step:
            case CreateGroup(manifest=manifest):
                owner = [record.revision.job.owner_reference()]
                body = {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owner}}
                try:
                    async with self._slot(record):
                        answer = await self._api.create(path, body)
                except AlreadyExists:
                    async with self._slot(record):
                        answer = await self._api.get(f"{path}/{manifest['metadata']['name']}")
                made = decode_group(answer)
                if made.owner_uid != record.uid:
                    sentence = f"PodGroup {made.name} exists and does not belong to this Job; delete or rename it"
                    return Refusal(reason="NameConflict", message=sentence)
                self._groups.put(made)
            case PatchGroup(group=group, patch=patch):
                try:
                    async with self._slot(record):
                        answer = await self._api.merge_patch(f"{path}/{group.name}", patch)
                except NotFound:  # the next plan makes it anew
                    self._groups.remove(group.key, uid=group.uid)
                else:
                    self._groups.put(decode_group(answer))
            case DeleteGroup(group=group):
                try:
                    async with self._slot(record):
                        answer = await self._api.delete(f"{path}/{group.name}", uid=group.uid)
                except NotFound:
                    answer = b""
                except Conflict:
                    if await self._is_there(record, f"{path}/{group.name}", uid=group.uid):
                        raise
                    answer = b""
                if _is_gone(answer):
                    self._groups.remove(group.key, uid=group.uid)
                else:  # somebody's finalizer holds it
                    self._groups.put(decode_group(answer))
        return None


class _LeadingSlot:
    """A slot of the limiter that is only given to a process that may write."""

    __slots__ = ("_assert_leading", "_slot")

    def __init__(self, limiter: FairLimiter, key: str, assert_leading: Callable[[], None]) -> None:
        self._slot = limiter.slot(key)
        self._assert_leading = assert_leading

    async def __aenter__(self) -> None:
        await self._slot.__aenter__()
        try:
            self._assert_leading()
        except BaseException:
            await self._slot.__aexit__(None, None, None)
            raise

    async def __aexit__(self, *args: Any) -> None:
        await self._slot.__aexit__(*args)


def _is_gone(answer: bytes) -> bool:
    """Return whether the answer to a deletion says that nothing is left: a Status instead of the object."""
    return not answer or b'"kind":"Status"' in answer[:64]


def _describe(step: Step) -> str:
    match step:
        case CreatePods():
            return "create pods"
        case DeletePods():
            return "delete pods"
        case ApplyObject(item=item):
            return f"create {item.wanted.ref.kind} {item.wanted.ref.name} of plugin {item.plugin}"
        case DeleteObject(ref=ref):
            return f"delete {ref.kind} {ref.name}"
        case CreateClaim(name=name) | CheckClaim(name=name):
            return f"claim {name}"
        case CreateGroup():
            return "create PodGroup"
        case PatchGroup(group=group):
            return f"update PodGroup {group.name}"
        case DeleteGroup(group=group):
            return f"delete PodGroup {group.name}"
        case PatchJob():
            return "record claim names in the Job"
        case AnnotateJob():
            return "annotate the Job"
        case DeleteJob():
            return "delete the finished Job"

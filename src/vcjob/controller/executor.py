"""The executor: carries out the steps of a plan, several at a time, and tells the stores what came of it.

Thin: it decides nothing but how a step is sent. Every write takes a slot of the limiter and first makes sure that this
process may still write. Refusals come back as values.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from vcjob.api.names import BATCH_API_VERSION, JOB_KIND, SCHEDULING_GROUP
from vcjob.gang.base import Gang, Group
from vcjob.kube.answers import read_answer, read_object
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, ServerError
from vcjob.kube.limiter import FairLimiter
from vcjob.lifecycle.pod import Pod
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

from .decode import decode_group, is_gone
from .jobs import JobRecord
from .memory import JobMemory
from .objects import ObjectWriter
from .pods import PodWriter
from .presence import is_there
from .queue import Key
from .refusals import Refusal, judge
from .reports import Report, Sink

__all__ = ("Executor",)

log = logging.getLogger(__name__)

_DELETIONS: Final = (DeletePods, DeleteGroup, DeleteObject, DeleteJob)


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
        has_job: Callable[[Key, str], bool],
        is_called: Callable[[Key], bool],
    ) -> None:
        self._api = api
        self._limiter = limiter
        self._groups = groups
        self._assert_leading = assert_leading
        self._objects = ObjectWriter(api, slot=self._slot)
        self._pods = PodWriter(
            api,
            slot=self._slot,
            store=pods,
            gang=gang,
            is_current=is_current,
            has_job=has_job,
            is_called=is_called,
        )

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
                # What the server says against a deletion tells nothing of the spec.
                report.refusals = [replace(r, deletion=True, permanent=False) for r in report.refusals]
            total.add(report)
        return total

    async def write_status(self, record: JobRecord, status: dict[str, Any]) -> dict[str, Any]:
        """Replace the status, unless the Job has changed; return the Job. Raises ApiError.

        Of what is put to a status subresource the server takes nothing but the status (an API convention), and it need
        not make the new object of the old one and a patch first.
        """
        meta = {"name": record.name, "namespace": record.namespace, "uid": record.uid}
        body = {
            "apiVersion": BATCH_API_VERSION,
            "kind": JOB_KIND,
            "metadata": {**meta, "resourceVersion": str(record.version)},
            "status": status,
        }
        async with self._slot(record):
            answer = await self._api.put(f"{record.path}/status", body, once=True)
        job = read_object(answer, path=record.path, uid=record.uid)
        if job.get("status") != status:
            raise ServerError("the answer to a new status has another one", path=record.path)
        return job

    def _slot(self, record: JobRecord) -> "_LeadingSlot":
        return _LeadingSlot(self._limiter, record.key, self._assert_leading)

    async def _run(self, record: JobRecord, memory: JobMemory, step: Step, report: Report, *, forwarded: bool) -> None:
        careful = memory.refusals > 0
        try:
            match step:
                case CreatePods():
                    await self._pods.create(record, step, report, careful=careful, forwarded=forwarded)
                case DeletePods():
                    await self._pods.delete(record, step, report, careful=careful)
                case ApplyObject():
                    refusal = await self._objects.apply(record, memory, step)
                    report.refusals += [refusal] if refusal else []
                case DeleteObject(ref=ref):
                    await self._objects.delete(record, memory, ref)
                case CreateClaim() | CheckClaim():
                    await self._claim(record, memory, step, report)
                case PatchJob(patch=patch):
                    # About the Job as it was looked at: another may have its name by now, or it may have been edited.
                    about = {"uid": record.uid, "resourceVersion": str(record.version)}
                    fence = [{"op": "add", "path": f"/metadata/{key}", "value": value} for key, value in about.items()]
                    async with self._slot(record):
                        answer = await self._api.json_patch(record.path, [*fence, *patch])
                    report.job = read_object(answer, path=record.path, uid=record.uid)
                case AnnotateJob(annotations=annotations):
                    body = {"metadata": {"uid": record.uid, "annotations": annotations}}
                    async with self._slot(record):
                        answer = await self._api.merge_patch(record.path, body)
                    report.job = read_object(answer, path=record.path, uid=record.uid)
                case CreateGroup() | PatchGroup() | DeleteGroup():
                    refusal = await self._group(record, step)
                    report.refusals += [refusal] if refusal else []
                case DeleteJob():
                    async with self._slot(record):
                        await self._api.delete(record.path, uid=record.uid, propagation="Foreground")
        except ApiError as error:
            report.refusals.append(judge(error, action=_describe(step)))

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
                    answer = await self._api.create(path, manifest)
                read_object(answer, path=f"{path}/{step.name}")
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
                made = read_answer(decode_group, answer, path=path)
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
                    self._groups.put(read_answer(decode_group, answer, path=path))
            case DeleteGroup(group=group):
                try:
                    async with self._slot(record):
                        answer = await self._api.delete(f"{path}/{group.name}", uid=group.uid)
                except (NotFound, Conflict):
                    if await is_there(self._api, self._slot(record), f"{path}/{group.name}", uid=group.uid):
                        raise
                    self._groups.remove(group.key, uid=group.uid)
                    return None
                if is_gone(answer):
                    self._groups.remove(group.key, uid=group.uid)
                else:  # somebody's finalizer holds it
                    self._groups.put(read_answer(decode_group, answer, path=path))
        return None


class _LeadingSlot:
    """A slot of the limiter that is only given to a process that may write."""

    __slots__ = ("_assert_leading", "_slot")

    def __init__(self, limiter: FairLimiter, key: Key, assert_leading: Callable[[], None]) -> None:
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

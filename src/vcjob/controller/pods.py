"""Writes Pods: many at a time, fewer after a refusal, and none for a Job whose wishes have changed meanwhile.

The first refusal ends it, because the rest would fare no better.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from vcjob.api.names import ANNOTATION_OUT_OF_SYNC, LABEL_JOB_NAME
from vcjob.gang.base import Gang
from vcjob.kube.answers import read_answer
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from vcjob.kube.protobuf import PROTOBUF
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.pod import Pod
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.steps import CreatePods, DeletePods

from .decode import is_gone
from .decode_pods import decode_pod
from .jobs import JobRecord
from .presence import is_there
from .queue import Key
from .refusals import Refusal, judge
from .reports import Report, Sink, Slot

__all__ = ("PodWriter",)

log = logging.getLogger(__name__)

_IN_FLIGHT: Final = 64  # Pods of one Job that may be on their way; the limiter decides how many really are
_SLICE_S: Final = 5.0  # then the Job is looked at, whose Pods do something by now, and the rest is done after that
_AT_FIRST: Final = 16  # so few until one has been taken
_AFTER_REFUSAL: Final = 1  # the first try after a refusal is a single Pod, then 2, 4, 8 ...


class PodWriter:
    """Creates and deletes Pods."""

    def __init__(
        self,
        api: ApiClient,
        *,
        slot: Callable[[JobRecord], Slot],
        store: Sink[Pod],
        gang: Gang,
        is_current: Callable[[JobRecord], bool],
        has_job: Callable[[Key, str], bool],
        is_called: Callable[[Key], bool],
    ) -> None:
        """`has_job`: whether there is a Job of this key and UID; `is_called`: whether somebody wants something else of
        the Job, a Command for instance.
        """
        self._api = api
        self._slot = slot
        self._store = store
        self._gang = gang
        self._is_current = is_current
        self._has_job = has_job
        self._is_called = is_called
        self._encode = msgspec.json.Encoder().encode

    async def create(
        self, record: JobRecord, step: CreatePods, report: Report, *, careful: bool, forwarded: bool
    ) -> None:
        """Create the step's Pods."""
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
                    answer = await self._api.create(path, self._encode(rendered.manifest), accept=PROTOBUF)
                self._store.put(read_answer(decode_pod, answer, path=path))
                report.created += 1
            except AlreadyExists:
                await self._look_at_namesake(record, f"{path}/{rendered.name}", report)

        await self._for_each(step.members, create, report, record=record, careful=careful, verb="create pods")

    async def _look_at_namesake(self, record: JobRecord, path: str, report: Report) -> None:
        """A Pod of the wanted name is there: ours that the watch has not shown yet, or somebody else's."""
        try:
            async with self._slot(record):
                pod = read_answer(decode_pod, await self._api.get(path, accept=PROTOBUF), path=path)
        except NotFound as error:  # gone in between: the next plan makes it
            report.refusals.append(Refusal(reason="Conflict", message=error.message, transient=True, conflict=True))
            return
        if pod.owner_uid == record.uid and pod.job == record.name:
            self._store.put(pod)
        elif pod.owner_uid == record.uid:
            sentence = (
                f"pod {pod.name} has lost its label {LABEL_JOB_NAME}={record.name}; set it again or delete the Pod"
            )
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))
        elif pod.owner_uid and self._has_job((record.namespace, pod.job), pod.owner_uid):
            sentence = f"pod {pod.name} belongs to Job {pod.job}; rename a Job or one of its tasks"
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))
        elif pod.owner_uid:
            whose = "an earlier Job of this name" if pod.job == record.name else f"Job {pod.job}, which is gone,"
            sentence = f"pod {pod.name} belongs to {whose} and is not gone yet"
            report.refusals.append(Refusal(reason="OldPodsTerminating", message=sentence))
        else:
            sentence = f"pod {pod.name} exists and does not belong to this Job; delete or rename it"
            report.refusals.append(Refusal(reason="NameConflict", message=sentence))

    async def delete(self, record: JobRecord, step: DeletePods, report: Report, *, careful: bool) -> None:
        """Delete the step's Pods, with a mark that it was us if the step asks for it."""

        async def delete(pod: Pod) -> None:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            try:
                if step.mark and not pod.ours:
                    mark = {"metadata": {"uid": pod.uid, "annotations": {ANNOTATION_OUT_OF_SYNC: "true"}}}
                    async with self._slot(record):
                        answer = await self._api.merge_patch(path, mark, accept=PROTOBUF)
                    self._store.put(read_answer(decode_pod, answer, path=path))
                if pod.deleted is not None:
                    return
                async with self._slot(record):
                    answer = await self._api.delete(path, uid=pod.uid, accept=PROTOBUF)
            except (NotFound, Conflict):
                # Another Pod has its name by now, the server could not get hold of this one, or a proxy is confused:
                # what is taken out of the store is never believed again.
                if await is_there(self._api, self._slot(record), path, uid=pod.uid):
                    raise
                self._store.remove(pod.key, uid=pod.uid)
                return
            report.deleted += 1
            if is_gone(answer):  # the API server itself answers with the Pod
                if not await is_there(self._api, self._slot(record), path, uid=pod.uid):
                    self._store.remove(pod.key, uid=pod.uid)
            else:
                self._store.put(read_answer(decode_pod, answer, path=path))

        await self._for_each(step.pods, delete, report, record=record, careful=careful, verb="delete pods")

    async def _for_each(
        self,
        todo: Sequence[Any],
        act: Callable[[Any], Awaitable[None]],
        report: Report,
        *,
        record: JobRecord,
        careful: bool,
        verb: str,
    ) -> None:
        """Act on every item, many at a time: few at first, twice as many after each success up to the limit of one Job.

        `careful` begins with a single one, because the last try was refused.

        Stops handing out items at the first refusal, when the Job is no more or its spec has changed, when it is called
        and when it ought to be looked at.
        """
        items = iter(todo)
        most = min(_IN_FLIGHT, len(todo))
        width = min(_AFTER_REFUSAL if careful else _AT_FIRST, most)
        running = 0
        refused = len(report.refusals)
        end = steady() + _SLICE_S

        async def work() -> None:
            nonlocal running, width
            try:
                for item in items:
                    if len(report.refusals) > refused or not self._is_current(record):
                        return
                    if self._is_called(record.key) or steady() > end:
                        report.cut = True
                        return
                    try:
                        await act(item)
                    except ApiError as error:
                        report.refusals.append(judge(error, action=_describe(verb, error)))
                        return
                    if width < most:
                        width = min(most, width * 2)
                    fill_up()
            finally:
                running -= 1

        def fill_up() -> None:
            nonlocal running
            while running < width:
                running += 1
                group.create_task(work(), name=f"{verb} {record.namespace}/{record.name}")

        async with asyncio.TaskGroup() as group:
            fill_up()


def _describe(verb: str, error: ApiError) -> str:
    """Say what was refused. A creation has no name in its path, and the server names the Pod."""
    name = error.path.rpartition("/")[2]
    return verb if name in ("", "pods") else f"{verb} ({name})"

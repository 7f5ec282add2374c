"""The engine: the stores of Jobs, Pods and groups, the queue between them and the reconciler, and its workers.

Events only mark a Job as worth a look; what to do follows from the stores. Stores are kept warm on every replica, but
only the leader's workers run.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Generic

import msgspec

from vcjob.api.names import BATCH_API_VERSION, BATCH_GROUP, LABEL_JOB_NAME, SCHEDULING_GROUP
from vcjob.gang.base import Gang, Group
from vcjob.kube.backoff import retry_delay
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, NotFound
from vcjob.kube.forms import JsonForm, ProtobufForm
from vcjob.kube.informer import Informer
from vcjob.kube.lease import NotLeading
from vcjob.kube.limiter import FairLimiter
from vcjob.kube.protobuf import PROTOBUF
from vcjob.kube.store import Store, T
from vcjob.lifecycle.pod import FAILED, Pod

from .commands import CommandRequest, Commands
from .decode import decode_group_event, decode_identity_event
from .decode_pods import decode_pod_message, decode_pods
from .executor import Executor
from .jobs import JobRecord, make_record
from .memory import JobMemory
from .pace import Pace
from .queue import Key, WorkQueue
from .reconciler import Reconciler
from .surroundings import Observer, PassResult

__all__ = ("Engine",)

log = logging.getLogger(__name__)

_PARALLEL: Final = 256  # Jobs that are looked at side by side; most of the time they wait for the API server
_LIST_AGAIN_S: Final = 10.0
_LAST_WORDS_S: Final = 1.5  # for the decisions that Commands asked for, when the work is ended
_RESYNC_S: Final = 600.0  # every Job is looked at this often, whatever happens; spread over the time
_AT_A_TIME: Final = 4
_NO_PODS: Final[Mapping[str, Pod]] = MappingProxyType({})


class Engine:
    """Everything between watch events and API writes."""

    def __init__(
        self,
        api: ApiClient,
        *,
        gang: Gang,
        observer: Observer,
        namespaces: tuple[str, ...] = (),
        assert_leading: Callable[[], None],
    ) -> None:
        self.queue = WorkQueue(on_taken=observer.pass_began)
        self.limiter = FairLimiter()
        self.jobs: Store[JobRecord] = Store(self._job_changed, now=steady)
        self.pods = Informer(
            api,
            "/api/v1/pods",
            form=ProtobufForm(decode_pod_message),
            on_change=self._pod_changed,
            params={"labelSelector": LABEL_JOB_NAME},
            namespaces=namespaces,
        )
        self.groups: Informer[Group] | None = None
        if gang.uses_groups:
            self.groups = Informer(
                api,
                f"/apis/{SCHEDULING_GROUP}/v1beta1/podgroups",
                form=JsonForm(decode_group_event),
                on_change=self._group_changed,
                namespaces=namespaces,
            )
        self.queues: dict[str, Mapping[str, Any]] = {}
        self.queues_known = False
        self.priority_values: dict[str, int] = {}
        self.fault = ""  # why no Job can be looked at; empty when they can
        self.passes = 0
        self.failures = 0
        self.pass_seconds = 0.0
        self.oldest_pass: dict[Key, float] = {}  # passes under way -> when they began (steady)
        self._api = api
        self._gang = gang
        self._observer = observer
        self._namespaces = namespaces
        self._pods_by_job: dict[Key, dict[str, Pod]] = {}
        self._groups_by_uid: dict[str, Group] = {}
        self._memories: dict[Key, JobMemory] = {}
        self._commands = Commands(api, assert_leading=assert_leading, tell=observer.event)
        self._failed: dict[Key, int] = {}
        self._pace = Pace()
        self._giving_way: dict[Key, None] = {}  # Jobs that have something to write which can wait; oldest first
        self._going_on: set[Key] = set()  # those of them whose turn it is
        self._bound: dict[Key, asyncio.Task[None]] = {}  # passes under way that carry out Commands
        self._writing = False  # a store is being told of our own write: nobody else need hear of it
        executor = Executor(
            api,
            limiter=self.limiter,
            pods=OwnWrites(self, self.pods.store),
            groups=OwnWrites(self, self.groups.store) if self.groups else None,
            gang=gang,
            assert_leading=assert_leading,
            is_current=self._is_current,
        )
        self._reconciler = Reconciler(
            executor=executor, surroundings=self, gang=gang, observer=observer, chance=random.random
        )

    # What the reconciler looks at

    def job(self, key: Key) -> JobRecord | None:
        return self.jobs.get(key)

    def put_job(self, raw: dict[str, Any]) -> None:
        with _Writing(self):
            self.take_job(raw)

    def drop_job(self, record: JobRecord) -> None:
        with _Writing(self):
            self.jobs.remove(record.key, uid=record.uid)

    async def read_job(self, record: JobRecord) -> None:
        """Read the Job anew, because a write has shown that the stored version is old."""
        try:
            raw = msgspec.json.decode(await self._api.get(record.path))
        except NotFound:
            self.drop_job(record)
        else:
            self.put_job(raw)

    async def read_pods(self, record: JobRecord) -> None:
        """Read the Job's Pods anew, because its status and what the watch has shown do not go together."""
        path = f"/api/v1/namespaces/{record.namespace}/pods"
        selector = {"labelSelector": f"{LABEL_JOB_NAME}={record.name}"}
        version, listed = decode_pods(await self._api.get(path, params=selector, accept=PROTOBUF))
        present = {pod.uid for pod in listed}
        with _Writing(self):
            for pod in [*self.pods_of(record).values()]:
                if pod.uid not in present and pod.version <= version:
                    self.pods.store.remove(pod.key, uid=pod.uid)
            for pod in listed:
                self.pods.store.put(pod)

    def pods_of(self, record: JobRecord) -> Mapping[str, Pod]:
        return self._pods_by_job.get(record.key, _NO_PODS)

    def group_of(self, record: JobRecord) -> Group | None:
        return self._groups_by_uid.get(record.uid)

    def queue_of(self, name: str) -> Mapping[str, Any] | None:
        return self.queues.get(name)

    def knows_queues(self) -> bool:
        return self._gang.uses_groups and self.queues_known

    def priorities(self) -> Mapping[str, int]:
        return self.priority_values

    def now(self) -> float:
        return self._api.clock.now().timestamp()

    def is_busy(self) -> bool:
        return self.limiter.busy

    def await_quiet(self, key: Key) -> None:
        self._giving_way[key] = None

    # What the watches bring

    def take_job(self, raw: dict[str, Any]) -> None:
        """Take a version of a Job, from a watch or as the answer to a write."""
        meta = raw["metadata"]
        key = (meta["namespace"], meta["name"])
        meta.pop("managedFields", None)
        known = self.jobs.get(key)
        if known is not None and known.uid == meta["uid"] and int(meta["resourceVersion"]) <= known.version:
            return
        self.jobs.put(make_record(raw, known))

    def knows(self, line: bytes) -> bool:
        """Return whether a watch event tells of no newer version of a Job than the store has."""
        try:
            event, key, uid, version = decode_identity_event(line)
        except msgspec.MsgspecError:  # a bookmark, an error, or something strange: not ours to judge
            return False
        known = self.jobs.get(key)
        return event in ("ADDED", "MODIFIED") and known is not None and known.uid == uid and version <= known.version

    def take_deleted_job(self, raw: dict[str, Any]) -> None:
        """Take the last version of a Job that is gone."""
        self.jobs.deleted(make_record(raw, self.jobs.get((raw["metadata"]["namespace"], raw["metadata"]["name"]))))

    def take_command(self, request: CommandRequest) -> None:
        """Queue a Command; it is deleted, and then carried out, by the next pass over its Job."""
        if self._commands.take(request):
            self.queue.add((request.namespace, request.target))

    def take_queue(self, name: str, spec: Mapping[str, Any] | None) -> None:
        """Take a Queue's spec, None when it is gone; Jobs that wait for it are looked at."""
        if spec is None:
            self.queues.pop(name, None)
            return
        new = name not in self.queues
        self.queues[name] = spec
        if new:
            for record in self.jobs:
                if record.revision.job.spec.queue == name and not record.status.running:
                    self.queue.add(record.key)

    def take_priority(self, name: str, value: int | None) -> None:
        """Take a PriorityClass's value, None when it is gone."""
        self.priority_values = {k: v for k, v in self.priority_values.items() if k != name}
        if value is not None:
            self.priority_values[name] = value

    def _job_changed(self, key: Key, old: JobRecord | None, new: JobRecord | None) -> None:
        if new is None:
            self._memories.pop(key, None)
            self._failed.pop(key, None)
            self._giving_way.pop(key, None)
            self._going_on.discard(key)
            self.queue.forget(key)
            if old is not None:
                self._observer.job_gone(old)
        elif not self._writing:
            self.queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.uid != old.uid or new.job != old.job):
            self._forget_pod(old)
        if new is not None:
            self._pods_by_job.setdefault((new.namespace, new.job), {})[new.name] = new
        if self._writing:
            return
        if old is None or new is None or old.signature != new.signature:
            delay = self._pace.delay(steady()) if _takes_its_course(old, new) else 0.0
            for job in {(pod.namespace, pod.job) for pod in (old, new) if pod is not None}:
                if delay:
                    self.queue.add_after(job, delay)
                else:
                    self.queue.add(job)

    def _forget_pod(self, pod: Pod) -> None:
        job = (pod.namespace, pod.job)
        pods = self._pods_by_job.get(job)
        if pods is not None:
            pods.pop(pod.name, None)
            if not pods:
                del self._pods_by_job[job]
        memory = self._memories.get(job)
        if self._writing or memory is None or memory.uid != pod.owner_uid:
            return
        if not pod.ours and pod.was_taken:  # somebody took it away: perhaps an eviction
            memory.removed[pod.name] = (pod, self.now())

    def _group_changed(self, key: Key, old: Group | None, new: Group | None) -> None:
        group = new or old
        assert group is not None
        if not group.owner_uid:
            return
        if new is None:
            self._groups_by_uid.pop(group.owner_uid, None)
        else:
            self._groups_by_uid[group.owner_uid] = new
        if not self._writing and (old is None or new is None or old.signature != new.signature):
            self.queue.add((group.namespace, group.owner_name))

    # Work

    async def watch(self) -> None:
        """Keep the stores of Pods and groups in step, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run(), name="pods")
            if self.groups is not None:
                group.create_task(self.groups.run(), name="groups")

    async def synced(self) -> None:
        """Wait until the stores hold everything that was there at the start."""
        await self.pods.synced.wait()
        if self.groups is not None:
            await self.groups.synced.wait()
        attempt = 0
        while True:
            try:
                await self.read_jobs()
            except ApiError as error:
                self.fault = f"jobs cannot be listed: {error.message}"
                delay = retry_delay(attempt, chance=random.random(), base_s=0.5, cap_s=_LIST_AGAIN_S)
                log.warning("jobs cannot be listed", extra={"error": error.message, "wait_s": round(delay, 2)})
                await asyncio.sleep(delay)
                attempt += 1
            else:
                self.fault = ""
                return

    def look_again(self) -> None:
        """Look at every Job at once, because what stood in their way may be gone."""
        for memory in self._memories.values():
            memory.hold = None
            memory.refusals = 0
        self._failed.clear()
        for record in self.jobs:
            self.queue.add(record.key)

    async def read_jobs(self) -> int:
        """Bring the Jobs in step with a list; return how many were not as the watch had told.

        The watch is kopf's, and it does not tell of what vanished while it was cut.
        """
        wrong = 0
        if self._gang.uses_groups:
            await self._read_queues()
        for namespace in self._namespaces or (None,):
            root = f"/apis/{BATCH_GROUP}/v1alpha1"
            path = f"{root}/jobs" if namespace is None else f"{root}/namespaces/{namespace}/jobs"
            listing = msgspec.json.decode(await self._api.get(path, params={"resourceVersion": "0"}, timeout_s=60.0))
            present = set()
            for raw in listing["items"]:
                meta = raw["metadata"]
                key = (meta["namespace"], meta["name"])
                present.add(key)
                known = self.jobs.get(key)
                if known is None or known.version < int(meta["resourceVersion"]):
                    wrong += known is not None
                    self.take_job({"apiVersion": f"{BATCH_GROUP}/v1alpha1", "kind": "Job", **raw})
            version = int(listing["metadata"]["resourceVersion"])
            wrong += self.jobs.forget_absent(present, version=version, namespace=namespace)
        return wrong

    async def _read_queues(self) -> None:
        listing = msgspec.json.decode(await self._api.get(f"/apis/{SCHEDULING_GROUP}/v1beta1/queues"))
        for raw in listing["items"]:
            self.take_queue(raw["metadata"]["name"], raw)
        self.queues_known = True

    async def work(self) -> None:
        """Look at Jobs for as long as this process leads; cancelled when it no longer does."""
        await self.synced()
        self._going_on.clear()
        for memory in self._memories.values():
            memory.verified = False  # somebody else may have led meanwhile
        for record in self.jobs:
            self.queue.add(record.key)
        slots = asyncio.Semaphore(_PARALLEL)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._resync(), name="resync")
            try:
                while True:
                    await slots.acquire()
                    key = await self.queue.get()
                    task = group.create_task(self._look(key), name=f"job {key[0]}/{key[1]}")
                    task.add_done_callback(lambda _: slots.release())
                    if self._commands.waiting(key):
                        self._bound[key] = task
            finally:
                await self._keep_promises()

    async def _keep_promises(self) -> None:
        """Let passes that have deleted a Command write what came of it; nobody else would carry it out."""
        if self._bound:
            await asyncio.wait(self._bound.values(), timeout=_LAST_WORDS_S)
        for key, memory in self._memories.items():
            for command in memory.commands:
                log.warning("command lost", extra={"job": "/".join(key), "command": command.name})

    async def _resync(self) -> None:
        """Look at every Job now and then, in case that an event was lost on a way nobody thought of."""
        while True:
            await asyncio.sleep(_RESYNC_S)
            try:
                if wrong := await self.read_jobs():
                    log.warning("jobs were not as the watch had told", extra={"jobs": wrong})
            except ApiError as error:
                log.warning("jobs cannot be listed", extra={"error": error.message})
            for record in list(self.jobs):
                self.queue.add_after(record.key, random.random() * _RESYNC_S / 2)

    async def _look(self, key: Key) -> None:
        began = perf_counter()
        self.oldest_pass[key] = steady()
        again: float | None = None
        result = PassResult.SUCCESS
        try:
            with self._observer.passing(key):
                again = await self._pass(key)
            self._failed.pop(key, None)
            result = PassResult.SUCCESS if again is None else PassResult.REQUEUE_AFTER
        except NotLeading:
            pass
        except ApiError as error:
            result, again = PassResult.ERROR, self._after_failure(key)
            log.info(
                "pass failed, will retry",
                extra={"job": "/".join(key), "error": error.message, "wait_s": round(again, 2)},
            )
        except Exception:  # whatever one Job makes us stumble over must not stop the others
            result, again = PassResult.ERROR, self._after_failure(key)
            log.exception("pass failed unexpectedly", extra={"job": "/".join(key), "wait_s": round(again, 2)})
        finally:
            self.oldest_pass.pop(key, None)
            self._bound.pop(key, None)
            took = perf_counter() - began
            self.passes += 1
            self.pass_seconds += took
            self._observer.pass_ended(result, took)
            # Nothing is remembered of a Job that is gone, and there would be no end to it.
            spacing = self._pace.take(steady(), pods=len(self._pods_by_job.get(key, ())))
            self.queue.done(key, spacing_s=spacing if key in self.jobs else 0.0)
            if again is not None and (key in self.jobs or self._commands.waiting(key)):
                self.queue.stats.retries += result is PassResult.ERROR
                self.queue.add_after(key, again)
            self._going_on.discard(key)
            self.go_on()

    def go_on(self) -> None:
        """Look at some of the Jobs that waited for a quiet moment; when they are done, it is the next ones' turn."""
        while self._giving_way and len(self._going_on) < _AT_A_TIME and not self.is_busy():
            key = next(iter(self._giving_way))
            del self._giving_way[key]
            self._going_on.add(key)
            self.queue.add(key)

    async def _pass(self, key: Key) -> float | None:
        record = self.jobs.get(key)
        if record is None:
            if await self._commands.drop(key, is_known=self._knows):
                self.queue.add(key)
            return None
        memory = self._memories.get(key)
        if memory is None or memory.uid != record.uid:
            memory = self._memories[key] = JobMemory(uid=record.uid)
        await self._commands.claim(record, memory)
        return await self._reconciler.look(key, memory)

    def _after_failure(self, key: Key) -> float:
        self.failures += 1
        count = self._failed[key] = self._failed.get(key, 0) + 1
        return retry_delay(count - 1, chance=random.random())

    def _is_current(self, record: JobRecord) -> bool:
        """Return whether the record still tells what the Job wants; its status may have moved on."""
        now = self.jobs.get(record.key)
        return now is not None and now.uid == record.uid and not now.deleting and now.revision is record.revision

    async def _knows(self, key: Key) -> bool:
        """Ask the API server for a Job that no watch has told of."""
        try:
            path = f"/apis/{BATCH_API_VERSION}/namespaces/{key[0]}/jobs/{key[1]}"
            self.take_job(msgspec.json.decode(await self._api.get(path)))
        except NotFound:
            return False
        return True


def _takes_its_course(old: Pod | None, new: Pod | None) -> bool:
    """Return whether a Pod has done what was expected of it, so that nobody hurries to hear of it."""
    return old is not None and new is not None and new.deleted is None and new.phase != FAILED


class OwnWrites(Generic[T]):
    """A store as the executor sees it: what it puts there is our own write, and no reason to look at the Job again."""

    def __init__(self, engine: Engine, store: Store[T]) -> None:
        self._engine = engine
        self._store = store

    def put(self, item: T) -> None:
        with _Writing(self._engine):
            self._store.put(item)

    def remove(self, key: Key, *, uid: str) -> None:
        with _Writing(self._engine):
            self._store.remove(key, uid=uid)


class _Writing:
    """While it lasts, changes of the stores are our own."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine._writing = True

    def __exit__(self, *args: object) -> None:
        self._engine._writing = False

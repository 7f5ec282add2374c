"""The view: what this process knows of Jobs, their Pods and groups, Queues and priorities.

Watches and the answers to our own writes keep it in step, on every replica. It decides nothing: what somebody else has
changed is news, told to a listener by the Job's key; what we wrote ourselves is not.
"""

import asyncio
import logging
import random
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol

from vcjob.api.base import DNS_NAME
from vcjob.api.names import BATCH_GROUP, LABEL_JOB_NAME, SCHEDULING_GROUP
from vcjob.gang.base import Gang, Group
from vcjob.kube.answers import read_answer, read_listing, read_object
from vcjob.kube.backoff import retry_delay
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, NotFound
from vcjob.kube.forms import Identity, JsonForm, ProtobufForm
from vcjob.kube.informer import Informer
from vcjob.kube.protobuf import PROTOBUF
from vcjob.kube.store import Store, T
from vcjob.lifecycle.pod import FAILED, Pod

from .decode import decode_group_event, read_number
from .decode_pods import decode_pod_message, decode_pods
from .jobs import JobRecord, job_path, make_record
from .presence import list_uids
from .queue import Key
from .referred import Raw, Referred
from .reports import Sink

__all__ = ("Listener", "View")

log = logging.getLogger(__name__)

_LIST_AGAIN_CAP_S: Final = 10.0
_NAME: Final = re.compile(DNS_NAME)
_NAME_MAX: Final = 253
_NO_PODS: Final[Mapping[str, Pod]] = MappingProxyType({})


class Listener(Protocol):
    """Who is told what others have done."""

    def hear(self, key: Key, *, can_wait: bool) -> None:
        """Something of this Job has changed; it `can_wait` if it is what was expected."""
        ...

    def lose_job(self, key: Key, last: JobRecord | None) -> None:
        """The Job is no more."""
        ...

    def lose_pod(self, pod: Pod) -> None:
        """A Pod is gone that we did not delete."""
        ...


class View:
    """For one running loop."""

    def __init__(self, api: ApiClient, *, gang: Gang, namespaces: tuple[str, ...], listener: Listener) -> None:
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
        self.queues = Referred(api, f"/apis/{SCHEDULING_GROUP}/v1beta1/queues", on_change=self._queue_changed)
        self.priority_classes = Referred(
            api, "/apis/scheduling.k8s.io/v1/priorityclasses", on_change=self._priority_changed
        )
        self.priorities: Mapping[str, int] = {}  # PriorityClass -> value
        self.fault = ""  # why the Jobs are not known; empty when they are
        self._api = api
        self._gang = gang
        self._namespaces = namespaces
        self._listener = listener
        self._pods_by_job: dict[Key, dict[str, Pod]] = {}
        self._writing = False  # a store is being told of our own write

    # What a pass looks at

    def job(self, key: Key) -> JobRecord | None:
        return self.jobs.get(key)

    def has_job(self, key: Key, uid: str) -> bool:
        """Return whether there is a Job of this key and UID."""
        record = self.jobs.get(key)
        return record is not None and record.uid == uid

    def pods_of(self, record: JobRecord) -> Mapping[str, Pod]:
        return self._pods_by_job.get(record.key, _NO_PODS)

    def count_pods(self, key: Key) -> int:
        return len(self._pods_by_job.get(key, _NO_PODS))

    def group_of(self, record: JobRecord) -> Group | None:
        """Return the Job's group; one of its name that the Job does not control is none."""
        if self.groups is None:
            return None
        found = self.groups.store.get((record.namespace, self._gang.group_name(record.revision.job)))
        return found if found is not None and found.owner_uid == record.uid else None

    @property
    def knows_queues(self) -> bool:
        """Whether a Queue that is not there does not exist."""
        return self.groups is not None and self.queues.known

    def now(self) -> float:
        """Return the API server's time, in seconds since the epoch."""
        return self._api.clock.now().timestamp()

    def is_current(self, record: JobRecord) -> bool:
        """Return whether the record still tells what the Job wants; its status may have moved on."""
        now = self.jobs.get(record.key)
        return now is not None and now.uid == record.uid and not now.deleting and now.revision is record.revision

    # What our own writes bring

    def put_job(self, raw: dict[str, Any]) -> None:
        with _Writing(self):
            self.take_job(raw)

    def drop_job(self, record: JobRecord) -> None:
        with _Writing(self):
            self.jobs.remove(record.key, uid=record.uid)

    @property
    def own_pods(self) -> Sink[Pod]:
        return OwnWrites(self, self.pods.store)

    @property
    def own_groups(self) -> Sink[Group] | None:
        return OwnWrites(self, self.groups.store) if self.groups else None

    # What is read anew

    async def read_job(self, record: JobRecord) -> None:
        """Read the Job anew, because a write has shown that the stored version is old."""
        try:
            raw = read_object(await self._api.get(record.path), path=record.path)
        except NotFound:
            if record.uid in await list_uids(self._api, record.path):
                raise  # the server could not get hold of it, or a proxy is confused
            self.drop_job(record)
        else:
            self.put_job(raw)

    async def find_job(self, key: Key) -> bool:
        """Ask the API server for a Job that no watch has told of; return whether there is one."""
        if (
            len(key[1]) > _NAME_MAX or _NAME.fullmatch(key[1]) is None
        ):  # whoever makes a Command may write anything there, even half a URL
            return False
        path = job_path(*key)
        try:
            raw = read_object(await self._api.get(path), path=path)
        except NotFound:
            if await list_uids(self._api, path):
                raise
            return False
        self.jobs.exhume(key)
        self.take_job(raw)
        return True

    async def read_pods(self, record: JobRecord) -> None:
        """Read the Job's Pods anew, because its status and what the watch has shown do not go together."""
        path = f"/api/v1/namespaces/{record.namespace}/pods"
        selector = {"labelSelector": f"{LABEL_JOB_NAME}={record.name}"}
        answer = await self._api.get(path, params=selector, accept=PROTOBUF)
        version, listed = read_answer(decode_pods, answer, path=path)
        present = {pod.uid for pod in listed}
        with _Writing(self):
            for pod in [*self.pods_of(record).values()]:
                if pod.uid not in present and pod.version <= version:
                    self.pods.store.remove(pod.key, uid=pod.uid)
            for pod in listed:
                self.pods.store.put(pod)

    async def read_jobs(self) -> int:
        """Bring the Jobs in step with a list; return how many were not as the watch had told.

        The watch is kopf's, and it does not tell of what vanished while it was cut.
        """
        wrong = 0
        if self.groups is not None:
            await self.queues.read()
            await self.priority_classes.read()
        for namespace in self._namespaces or (None,):
            root = f"/apis/{BATCH_GROUP}/v1alpha1"
            path = f"{root}/jobs" if namespace is None else f"{root}/namespaces/{namespace}/jobs"
            answer = await self._api.get(path, params={"resourceVersion": "0"}, timeout_s=60.0)
            listing = read_listing(answer, path=path)
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

    # What the watches bring

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
                delay = retry_delay(attempt, chance=random.random(), base_s=0.5, cap_s=_LIST_AGAIN_CAP_S)
                log.warning("jobs cannot be listed", extra={"error": error.message, "wait_s": round(delay, 2)})
                await asyncio.sleep(delay)
                attempt += 1
            else:
                self.fault = ""
                return

    def take_job(self, raw: dict[str, Any]) -> None:
        """Take a version of a Job, from a watch or as the answer to a write."""
        meta = raw["metadata"]
        key = (meta["namespace"], meta["name"])
        meta.pop("managedFields", None)
        known = self.jobs.get(key)
        if known is not None and known.uid == meta["uid"] and int(meta["resourceVersion"]) <= known.version:
            return
        self.jobs.put(make_record(raw, known))

    def knows(self, told: Identity) -> bool:
        """Return whether a watch event tells of no newer version of a Job than the store has."""
        known = self.jobs.get(told.key)
        if known is None or known.uid != told.uid or told.event not in ("ADDED", "MODIFIED"):
            return False
        return read_number(told.version, 0) <= known.version

    def take_deleted_job(self, raw: dict[str, Any]) -> None:
        """Take the last version of a Job that is gone."""
        self.jobs.deleted(make_record(raw, self.jobs.get((raw["metadata"]["namespace"], raw["metadata"]["name"]))))

    # From changes of the stores to news

    def _job_changed(self, key: Key, old: JobRecord | None, new: JobRecord | None) -> None:
        if new is None:
            self._listener.lose_job(key, old)
        elif not self._writing:
            self._listener.hear(key, can_wait=False)

    def _queue_changed(self, name: str, old: Raw | None, new: Raw | None) -> None:
        if old is None:  # Jobs may be waiting for it
            for record in self.jobs:
                if record.revision.job.spec.queue == name and not record.status.running:
                    self._listener.hear(record.key, can_wait=False)

    def _priority_changed(self, name: str, old: Raw | None, new: Raw | None) -> None:
        others = {known: value for known, value in self.priorities.items() if known != name}
        self.priorities = others if new is None else others | {name: _read_value(new)}

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.uid != old.uid or new.job != old.job):
            self._forget_pod(old)
        if new is not None:
            self._pods_by_job.setdefault((new.namespace, new.job), {})[new.name] = new
        if self._writing:
            return
        if old is None or new is None or old.signature != new.signature:
            for job in {(pod.namespace, pod.job) for pod in (old, new) if pod is not None}:
                self._listener.hear(job, can_wait=_is_expected(old, new))

    def _forget_pod(self, pod: Pod) -> None:
        job = (pod.namespace, pod.job)
        pods = self._pods_by_job.get(job)
        if pods is not None:
            pods.pop(pod.name, None)
            if not pods:
                del self._pods_by_job[job]
        if not self._writing:
            self._listener.lose_pod(pod)

    def _group_changed(self, key: Key, old: Group | None, new: Group | None) -> None:
        if self._writing:
            return
        if old is None or new is None or old.signature != new.signature:
            for name in dict.fromkeys(group.owner_name for group in (old, new) if group is not None):
                if name:
                    self._listener.hear((key[0], name), can_wait=False)


def _read_value(priority_class: Raw) -> int:
    value = priority_class.get("value")
    return value if isinstance(value, int) else 0


def _is_expected(old: Pod | None, new: Pod | None) -> bool:
    """Return whether a Pod has done what was expected of it, so that nobody hurries to hear of it."""
    if old is None or new is None or (old.job, old.owner_uid) != (new.job, new.owner_uid):
        return False
    return new.deleted is None and new.phase != FAILED


class OwnWrites(Generic[T]):
    """A store as the executor sees it: what it puts there is our own write, and no news."""

    def __init__(self, view: View, store: Store[T]) -> None:
        self._view = view
        self._store = store

    def put(self, item: T) -> None:
        with _Writing(self._view):
            self._store.put(item)

    def remove(self, key: Key, *, uid: str) -> None:
        with _Writing(self._view):
            self._store.remove(key, uid=uid)


class _Writing:
    """While it lasts, changes of the stores are our own."""

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    def __enter__(self) -> None:
        self._view._writing = True

    def __exit__(self, *args: object) -> None:
        self._view._writing = False

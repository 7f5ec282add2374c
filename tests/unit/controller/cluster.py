"""An API server in memory, as far as the controller needs one: versions, status, graceful deletion, watches.

What happens in it is decided by the test: Pods live and die only when `Cluster` is told so. Every write of the operator
passes `SimApi`, which can let the process die between any two of them.
"""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from tests.unit.controller.binary import pod_answer, pod_list, pod_message, status_answer

from vcjob.kube.answers import check_deletion
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound, ServerError
from vcjob.kube.protobuf import PROTOBUF
from vcjob.lifecycle.status import format_time

__all__ = ("JOBS", "PODGROUPS", "PODS", "Cluster", "Crash", "SimApi", "Write")

Raw = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name

PODS: Final = "pods"
JOBS: Final = "jobs"
PODGROUPS: Final = "podgroups"
COMMANDS: Final = "commands"
_PATH = re.compile(r"^/(?:api|apis)/(?:[^/]+/)?v[^/]+/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?(/status)?$")


class Crash(BaseException):
    """The operator's process dies here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write of the operator, for invariants to look at."""

    verb: str
    key: Key
    old: Raw | None
    new: Raw | None


@dataclass(slots=True)
class Cluster:
    """All objects, and what a watch would tell of them."""

    now: float = 1_900_000_000.0
    objects: dict[Key, Raw] = field(default_factory=dict)
    events: dict[str, list[tuple[str, Raw]]] = field(default_factory=dict)  # plural -> (type, object)
    pod_quota: int | None = None
    busy: bool = False  # with other Jobs
    version: int = 0
    listeners: list[Callable[[Write], None]] = field(default_factory=list)

    # Reading

    def get(self, plural: str, name: str) -> Raw | None:
        return self.objects.get((plural, "ns", name))

    def all(self, plural: str) -> list[Raw]:
        return [obj for key, obj in sorted(self.objects.items()) if key[0] == plural]

    # Writing: each of these is one atomic change

    def create(self, plural: str, raw: Raw) -> Raw:
        meta = raw["metadata"]
        key = (plural, "ns", meta["name"])
        if key in self.objects:
            raise AlreadyExists(f"{plural} {meta['name']!r} already exists", code=409, reason="AlreadyExists")
        if plural == PODS and self.pod_quota is not None and len(self.all(PODS)) >= self.pod_quota:
            raise Forbidden(f"pods {meta['name']!r} is forbidden: exceeded quota: q", code=403, reason="Forbidden")
        new = copy.deepcopy(raw)
        self.version += 1
        new["metadata"] |= {
            "namespace": "ns",
            "uid": f"{plural}-{meta['name']}-{self.version}",
            "creationTimestamp": format_time(self.now),
            "generation": 1,
        }
        if plural == PODS:
            new["status"] = {"phase": "Pending"}
        return self._store("ADDED", key, new)

    def change(self, key: Key, edit: Callable[[Raw], None]) -> Raw:
        """Change an object in place by `edit`; a changed spec or deletion makes a new generation."""
        old = self._existing(key)
        new = copy.deepcopy(old)
        edit(new)
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        return self._store("MODIFIED", key, new)

    def delete(self, key: Key, *, grace: bool = True) -> Raw | None:
        """Delete an object; a Pod that has begun to run stays, terminating, until `finish` is called."""
        old = self._existing(key)
        if old["metadata"].get("deletionTimestamp"):
            return old
        holds = old["metadata"].get("finalizers") or (
            grace and key[0] == PODS and old["status"]["phase"] in ("Running", "Unknown")
        )
        if not holds:
            self.finish(key)
            return None

        def mark(raw: Raw) -> None:
            raw["metadata"] |= {"deletionTimestamp": format_time(self.now + 30), "deletionGracePeriodSeconds": 30}

        return self.change(key, mark)

    def finish(self, key: Key) -> None:
        """Have an object be gone."""
        old = self.objects.pop(key)
        self.version += 1
        last = copy.deepcopy(old)
        last["metadata"]["resourceVersion"] = str(self.version)
        self.events.setdefault(key[0], []).append(("DELETED", last))

    def collect_garbage(self) -> None:
        """Delete what is owned by objects that are no more."""
        uids = {obj["metadata"]["uid"] for obj in self.objects.values()}
        for key, obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences") or ()
            if owners and all(owner["uid"] not in uids for owner in owners):
                self.delete(key)

    def _existing(self, key: Key) -> Raw:
        if key not in self.objects:
            raise NotFound(f"{key[0]} {key[2]!r} not found", code=404, reason="NotFound", path=f"/{key[0]}/{key[2]}")
        return self.objects[key]

    def _store(self, event: str, key: Key, new: Raw) -> Raw:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = new
        self.events.setdefault(key[0], []).append((event, new))
        return new


class _Clock:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._cluster.now, UTC)


class SimApi:
    """The operator's client: the verbs of `ApiClient`, on a cluster in memory, for the life of one process."""

    def __init__(self, cluster: Cluster) -> None:
        self.clock = _Clock(cluster)
        self.writes = 0
        self.dies_after: int | None = None  # writes
        self.answers_lost: set[int] = set()  # numbers of writes that take effect without an answer
        # What is said in place of the write, or the read of one object; an answer instead of an error is a lie.
        self.refuse: Callable[[str, Key], ApiError | bytes | None] = lambda verb, key: None
        self._cluster = cluster

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float = 30.0,
    ) -> bytes:
        self._must_live()
        if path.endswith("/queues"):
            return msgspec.json.encode({"items": [], "metadata": {"resourceVersion": "1"}})
        key, _ = _parse(path)
        if key[2]:
            if isinstance(said := self.refuse("get", key), ApiError):
                raise said
            return _encode(self._cluster._existing(key), accept, name=key[2])
        wanted = (params or {}).get("fieldSelector", "").removeprefix("metadata.name=")
        items, version = self._cluster.all(key[0]), self._cluster.version
        items = [item for item in items if wanted in ("", item["metadata"]["name"])]
        if accept == PROTOBUF:
            return pod_list([pod_message(item) for item in items], version=version)
        return msgspec.json.encode({"items": items, "metadata": {"resourceVersion": str(version)}})

    async def create(self, path: str, body: Raw | bytes, *, accept: str | None = None) -> bytes:
        raw = msgspec.json.decode(body) if isinstance(body, bytes) else body
        key, _ = _parse(path)
        key = (key[0], "ns", raw["metadata"]["name"])
        return self._write("create", key, lambda: self._cluster.create(key[0], raw), accept=accept)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        accept: str | None = None,
        once: bool = False,
    ) -> bytes:
        key, _ = _parse(path)

        def act() -> Raw | None:
            old = self._cluster._existing(key)
            for name, value in (("uid", uid), ("resourceVersion", resource_version)):
                if value is not None and old["metadata"][name] != value:
                    raise Conflict(f"the {name} in the precondition does not match", code=409, reason="Conflict")
            return self._cluster.delete(key)

        answer = self._write("delete", key, act, accept=accept)
        if accept is None:  # as the client does
            check_deletion(answer, path=path, uid=uid)
        return answer

    async def merge_patch(self, path: str, body: Raw, *, accept: str | None = None) -> bytes:
        key, status = _parse(path)
        assert not status

        def act() -> Raw:
            old = self._cluster._existing(key)
            if body.get("metadata", {}).get("uid") not in (None, old["metadata"]["uid"]):
                raise Conflict("the uid in the precondition does not match", code=409, reason="Conflict")
            return self._cluster.change(key, lambda raw: _merge(raw, copy.deepcopy(body)))

        return self._write("patch", key, act, accept=accept)

    async def put(self, path: str, body: Raw, *, once: bool = False) -> bytes:
        key, status = _parse(path)
        assert status and once

        def act() -> Raw:
            old = self._cluster._existing(key)
            for name in ("resourceVersion", "uid"):
                if body["metadata"][name] != old["metadata"][name]:
                    raise Conflict("the object has been modified", code=409, reason="Conflict")
            return self._cluster.change(key, lambda raw: raw.update(status=copy.deepcopy(body["status"])))

        return self._write("status", key, act)

    async def json_patch(self, path: str, body: list[Raw]) -> bytes:
        key, _ = _parse(path)

        def edit(raw: Raw) -> None:
            for operation in body:
                known = raw["metadata"].get(operation["path"].removeprefix("/metadata/"))
                if known not in (None, operation["value"]):  # a UID or version that the object no longer has
                    raise Conflict("the object has been modified", code=409, reason="Conflict")
                *parents, last = operation["path"].strip("/").split("/")
                target: Any = raw
                for part in parents:
                    target = target[int(part) if isinstance(target, list) else part]
                target[last] = operation["value"]

        return self._write("patch", key, lambda: self._cluster.change(key, edit))

    def _write(self, verb: str, key: Key, act: Callable[[], Raw | None], *, accept: str | None = None) -> bytes:
        self._must_live()
        if isinstance(said := self.refuse(verb, key), ApiError):
            raise said
        if said is not None:
            return said
        self.writes += 1
        old = copy.deepcopy(self._cluster.objects.get(key))
        new = act()
        for listener in self._cluster.listeners:
            listener(Write(verb=verb, key=key, old=old, new=copy.deepcopy(new)))
        if self.writes in self.answers_lost:
            raise ServerError("etcdserver: request timed out", code=504, reason="Timeout", path=f"/{key[0]}/{key[2]}")
        return _encode(new, accept, name=key[2])

    def _must_live(self) -> None:
        if self.dies_after is not None and self.writes >= self.dies_after:
            raise Crash


def _encode(raw: Raw | None, accept: str | None, *, name: str) -> bytes:
    """Return the answer that tells of an object, a Pod if in protobuf, or that it is gone."""
    if accept == PROTOBUF:
        return pod_answer(raw) if raw is not None else status_answer()
    gone = {"kind": "Status", "status": "Success", "details": {"name": name}}
    return msgspec.json.encode(raw if raw is not None else gone)


def _parse(path: str) -> tuple[Key, bool]:
    found = _PATH.match(path)
    if found is None:
        raise ApiError(f"no such path: {path}", code=404)
    namespace, plural, name, status = found.groups()
    return (plural, namespace, name or ""), status is not None


def _merge(target: Raw, patch: Raw) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        elif isinstance(value, dict):
            target[key] = {}
            _merge(target[key], value)
        else:
            target[key] = value

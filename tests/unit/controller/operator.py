"""The real engine on a cluster in memory, driven step by step: the test decides what it hears of, and when."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Final

import msgspec
from tests.unit.controller.binary import pod_message
from tests.unit.controller.cluster import JOBS, PODGROUPS, PODS, Cluster, Crash, SimApi

from vcjob.api.job import Phase
from vcjob.controller.decode import decode_group
from vcjob.controller.decode_pods import decode_pod_message
from vcjob.controller.engine import Engine
from vcjob.controller.jobs import JobRecord
from vcjob.controller.observer import PassResult
from vcjob.controller.requests import CommandRequest
from vcjob.gang.base import Gang
from vcjob.kube.errors import ApiError
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.status import Status

__all__ = ("EventLog", "SimLoop", "SimOperator")

_KINDS: Final = (JOBS, PODS, PODGROUPS)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class SimLoop(asyncio.SelectorEventLoop):
    """A loop whose clock is the cluster's."""

    cluster: Cluster | None = None

    def time(self) -> float:
        return self.cluster.now if self.cluster is not None else super().time()


class EventLog:
    """What was told to the world."""

    def __init__(self) -> None:
        self.events: list[EventNote] = []
        self.dropped: list[str] = []  # names of Commands

    def event(self, record: JobRecord, note: EventNote) -> None:
        self.events.append(note)

    def command_dropped(self, request: CommandRequest) -> None:
        self.dropped.append(request.name)

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None: ...

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None: ...

    def job_gone(self, record: JobRecord) -> None: ...

    def pass_began(self, waited_s: float) -> None: ...

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[None]:
        return nullcontext()

    def pass_ended(self, result: PassResult, took_s: float) -> None: ...


class SimQueue:
    """Which Jobs are to be looked at, by the cluster's clock; what it does not hold is not looked at."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._due: dict[tuple[str, str], float] = {}

    def add(self, key: tuple[str, str]) -> None:
        self._due[key] = 0.0

    def add_after(self, key: tuple[str, str], delay_s: float) -> None:
        due = self._cluster.now + delay_s
        self._due[key] = min(due, self._due.get(key, due))

    def forget(self, key: tuple[str, str]) -> None:
        self._due.pop(key, None)

    def ready(self) -> list[tuple[str, str]]:
        return [key for key, due in self._due.items() if due <= self._cluster.now]

    def take(self, key: tuple[str, str]) -> None:
        self._due.pop(key, None)

    def next_due(self) -> float | None:
        return min(self._due.values(), default=None)


class SimOperator:
    """One process of the operator: from `start` until it dies."""

    def __init__(self, cluster: Cluster, *, gang: Gang) -> None:
        self.log = EventLog()
        self.api = SimApi(cluster)
        self.cluster = cluster
        self.engine = Engine(self.api, gang=gang, observer=self.log, assert_leading=lambda: None)  # type: ignore[arg-type]
        self.queue = self.engine.queue = SimQueue(cluster)  # type: ignore[assignment]
        self.engine.quiet.is_busy = lambda namespace: cluster.busy  # type: ignore[method-assign]
        self.heard = dict.fromkeys((*_KINDS, "commands"), 0)
        self.listed = dict.fromkeys(_KINDS, 0)  # where the present watch of each kind began
        for kind in _KINDS:
            self.list_again(kind)
        self.heard["commands"] = 0
        self.lead()
        self.hear_commands()

    # What it hears of

    def list_again(self, kind: str) -> None:
        """Replace a watch, as after a cut: what happened meanwhile is not told one by one."""
        listed = self.cluster.all(kind)
        for raw in listed:
            self._take(kind, "ADDED", raw)
        keys = [("ns", raw["metadata"]["name"]) for raw in listed]
        store = self._store(kind)
        if store is not None:
            store.forget_absent(keys, version=self.cluster.version, namespace=None)
        self.heard[kind] = self.listed[kind] = len(self.cluster.events.get(kind, ()))

    def hear(self, kind: str, count: int = 10**9) -> None:
        """Take the next events of a watch."""
        events = self.cluster.events.get(kind, [])
        for event, raw in events[self.heard[kind] : self.heard[kind] + count]:
            self.heard[kind] += 1
            self._take(kind, event, raw)

    def hear_again(self, kind: str, back: int) -> None:
        """Take an event once more that was told before, as a belated answer to a write would tell it."""
        told = self.cluster.events.get(kind, [])[self.listed[kind] : self.heard[kind]]
        if told and told[-1 - back % len(told)][0] != "DELETED":
            self._take(kind, *told[-1 - back % len(told)])

    def hear_all(self) -> None:
        for kind in _KINDS:
            self.hear(kind)
        self.hear_commands()

    def hear_commands(self) -> None:
        for event, raw in self.cluster.events.get("commands", [])[self.heard["commands"] :]:
            self.heard["commands"] += 1
            request = CommandRequest(
                namespace="ns",
                name=raw["metadata"]["name"],
                uid=raw["metadata"]["uid"],
                action=raw["action"],
                target=raw["target"]["name"],
                target_uid=raw["target"]["uid"],
            )
            if event == "ADDED":
                self.engine.take_command(request)
            elif event == "DELETED":
                self.engine.lose_command(request)

    def _store(self, kind: str) -> Any:
        if kind == PODS:
            return self.engine.view.pods.store
        if kind == PODGROUPS:
            return self.engine.view.groups.store if self.engine.view.groups else None
        return self.engine.view.jobs

    def _take(self, kind: str, event: str, raw: dict[str, Any]) -> None:
        store = self._store(kind)
        if store is None:
            return
        if kind == JOBS:
            body = {**raw, "metadata": dict(raw["metadata"])}
            (self.engine.view.take_deleted_job if event == "DELETED" else self.engine.view.take_job)(body)
            return
        item = decode_pod_message(pod_message(raw)) if kind == PODS else decode_group(msgspec.json.encode(raw))
        (store.deleted if event == "DELETED" else store.put)(item)

    # What it does

    def lead(self) -> None:
        """Begin to lead, as `Engine.work` does it."""
        for record in self.engine.view.jobs:
            self.queue.add(record.key)

    async def work(self) -> bool:
        """Look at one Job that is due; False when none is. Raises Crash when the process dies."""
        ready = self.queue.ready()
        if not ready:
            return False
        key = ready[0]
        self.queue.take(key)
        try:
            again = await self.engine._pass(key)
        except ApiError:
            again = 1.0
        except BaseExceptionGroup as group:
            if group.split(Crash)[0] is not None:
                raise Crash from None
            raise
        if again is not None and (key in self.engine.view.jobs or self.engine._commands.waiting(key)):
            self.queue.add_after(key, again)
        self.engine.quiet.done(key)
        return True

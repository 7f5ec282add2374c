"""Event recorder: tells users in `kubectl describe` what was done and why, without flooding anybody.

Owns the Events that this process writes. `record` never waits and never fails; a single worker sends at low priority,
one request at a time, and what cannot be sent in time is dropped, because nothing depends on Events. What repeats is
counted in one Event rather than told again, in the manner of Kubernetes' own components:

- the same object, type, reason and message within 10 minutes raise the count of the Event, sent at most each 30 s;
- more than 10 different messages of one reason within 10 minutes continue as one combined Event;
- an object has 25 requests to spend and gets a new one every 5 minutes; the first Event of a reason is always told.
"""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from vcjob.kube.answers import read_object
from vcjob.kube.backoff import retry_delay
from vcjob.kube.clock import ServerClock, steady
from vcjob.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound, Transient
from vcjob.kube.event_queue import EventQueue

__all__ = ("EventApi", "EventRecorder", "EventStats", "ObjectRef", "cut_message")

log = logging.getLogger(__name__)

MESSAGE_MAX: Final = 1024  # bytes of UTF-8
_NAME_MAX: Final = 200  # of the object's name within the Event's; a name may have 253 characters in all
_WINDOW_S: Final = 600.0
_PATCH_PERIOD_S: Final = 30.0
_SIMILAR_MAX: Final = 10
_COMBINED: Final = "(combined from similar events): "
_BURST: Final = 25.0
_REFILL_S: Final = 300.0
_REMEMBERED: Final = 4096  # series, reasons and objects each; the longest unused are forgotten
_ATTEMPTS_MAX: Final = 5
_AT_A_TIME: Final = 4  # as many requests as still count for a quiet moment
_AT_THE_END: Final = 16  # when there is nothing else to do


class EventApi(Protocol):
    """What the recorder needs of an API client."""

    @property
    def clock(self) -> ServerClock: ...

    async def create(self, path: str, body: dict[str, Any]) -> bytes: ...

    async def merge_patch(self, path: str, body: dict[str, Any]) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str  # "" for a cluster-wide object: its Events go to "default"
    name: str
    uid: str
    resource_version: str = ""


@dataclass(slots=True, kw_only=True)
class EventStats:
    """Counters, for metrics."""

    recorded: int = 0
    sent: int = 0
    dropped: int = 0  # for want of room, allowance or success


@dataclass(slots=True, kw_only=True)
class _Series:
    """One Event, as it is told and as it ought to be told."""

    ref: ObjectRef
    name: str  # of the Event; the same in each attempt, so that a lost answer makes no second Event
    type: str
    reason: str
    message: str
    first: datetime
    last: datetime
    seen_at: float  # steady
    count: int = 1
    created: bool = False
    sent_at: float = float("-inf")  # steady
    waiting: bool = False  # in the queue, or on its way
    attempts: int = 0

    @property
    def path(self) -> str:
        return f"{_collection(self.ref)}/{self.name}"


@dataclass(slots=True, kw_only=True)
class _Reason:
    """The different messages of one reason of one object within the window."""

    since: float  # steady
    messages: set[int] = field(default_factory=set)  # hashes


@dataclass(slots=True, kw_only=True)
class _Allowance:
    tokens: float
    at: float  # steady

    def take(self, now: float) -> bool:
        self.tokens = min(_BURST, self.tokens + (now - self.at) / _REFILL_S)
        self.at = now
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True


class EventRecorder:
    """Collects what is to be told; `run()` tells it."""

    def __init__(
        self,
        api: EventApi,
        *,
        instance: str,
        component: str = "vcjob-controller-manager",
        is_busy: Callable[[], bool] = lambda: False,
        may_write: Callable[[], bool] = lambda: True,
        now: Callable[[], float] = steady,
    ) -> None:
        """`instance` names this process, the Pod's name for example.

        Events give way for a while when `is_busy`, and are dropped when not `may_write`.
        """
        self.stats = EventStats()
        self._api = api
        self._component = component
        self._instance = instance
        self._may_write = may_write
        self._now = now
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._reasons: OrderedDict[tuple[str, ...], _Reason] = OrderedDict()
        self._allowances: OrderedDict[tuple[str, ...], _Allowance] = OrderedDict()
        self._queue = EventQueue[_Series](is_busy=is_busy, now=now)
        self._wake = asyncio.Event()
        self._ending = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._refused = ""  # the last refusal that was logged

    @property
    def waiting(self) -> int:
        """How many Events wait to be sent."""
        return len(self._queue)

    # Recording

    def record(self, ref: ObjectRef, type_: str, reason: str, message: str) -> None:
        """Tell that something happened to `ref`; `type_` is "Normal" or "Warning", `reason` a CamelCase word."""
        self.stats.recorded += 1
        now, stamp, message = self._now(), self._api.clock.now(), cut_message(message)
        subject = (ref.namespace, ref.kind, ref.name, ref.uid)
        kind = (*subject, type_, reason)
        is_first = kind not in self._reasons
        combined = self._count_messages(kind, message, now) > _SIMILAR_MAX
        series_key = (*kind, _COMBINED if combined else message)
        text = cut_message(_COMBINED + message) if combined else message
        series = self._series.get(series_key)
        if series is not None and now - series.seen_at <= _WINDOW_S:
            self._series.move_to_end(series_key)
            series.count += 1
            series.last, series.seen_at, series.message = stamp, now, text
            if not series.waiting:
                self._enqueue(series, max(now, series.sent_at + _PATCH_PERIOD_S))
            return
        if not is_first and not self._allow(subject, now):
            self.stats.dropped += 1
            return
        series = _Series(
            ref=ref,
            name=_event_name(ref.name),
            type=type_,
            reason=reason,
            message=text,
            first=stamp,
            last=stamp,
            seen_at=now,
        )
        if self._enqueue(series, now):
            self._series[series_key] = series
            self._series.move_to_end(series_key)  # an old one may have stood there
            _forget(self._series)
            self._forget_old(now)

    def _forget_old(self, now: float) -> None:
        """Drop what the window has left behind, the longest unused first: most of it is of objects that are gone."""
        while self._series and next(iter(self._series.values())).seen_at + _WINDOW_S < now:
            self._series.popitem(last=False)
        while self._reasons and next(iter(self._reasons.values())).since + _WINDOW_S < now:
            self._reasons.popitem(last=False)

    def _count_messages(self, kind: tuple[str, ...], message: str, now: float) -> int:
        """Note a message of a reason; return how many different ones the window holds."""
        known = self._reasons.get(kind)
        if known is None or now - known.since > _WINDOW_S:
            self._reasons[kind] = known = _Reason(since=now)
        self._reasons.move_to_end(kind)
        _forget(self._reasons)
        if len(known.messages) <= _SIMILAR_MAX:
            known.messages.add(hash(message))
        return len(known.messages)

    def _allow(self, subject: tuple[str, ...], now: float) -> bool:
        allowance = self._allowances.get(subject)
        if allowance is None:
            self._allowances[subject] = allowance = _Allowance(tokens=_BURST, at=now)
            _forget(self._allowances)
        self._allowances.move_to_end(subject)
        return allowance.take(now)

    def _enqueue(self, series: _Series, due: float) -> bool:
        series.waiting = self._queue.put(series, due=due, is_warning=series.type == "Warning")
        if series.waiting:
            self._wake.set()
        else:
            self.stats.dropped += 1
        return series.waiting

    # Sending

    async def run(self) -> None:
        """Send what is due until stopped or cancelled."""
        self._worker = asyncio.current_task()
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_A_TIME):
                group.create_task(self._work(), name=f"events {number}")
            await self._ending.wait()
            for number in range(_AT_A_TIME, _AT_THE_END):
                group.create_task(self._work(), name=f"events {number}")

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            series = self._queue.take(all_are_due=self._ending.is_set())
            if series is not None:
                await self._tell(series)
            elif self._ending.is_set():
                return
            else:
                try:
                    async with asyncio.timeout(self._queue.wait_s()):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def stop(self, *, deadline_s: float) -> None:
        """Send what is still waiting, for at most `deadline_s` seconds, and end `run`."""
        self._ending.set()
        self._wake.set()
        if self._worker is None:
            return
        await asyncio.wait([self._worker], timeout=deadline_s)
        self._worker.cancel()
        await asyncio.wait([self._worker])
        if dropped := self._queue.clear():
            self.stats.dropped += dropped
            log.warning("events dropped at the end", extra={"events": dropped})

    async def _tell(self, series: _Series) -> None:
        """Send a series that was taken out of the queue; what comes meanwhile is told later."""
        now = self._now()
        subject = (series.ref.namespace, series.ref.kind, series.ref.name, series.ref.uid)
        if series.created and series.attempts == 0 and not self._ending.is_set() and not self._allow(subject, now):
            self._enqueue(series, now + _REFILL_S)  # late is enough for a count
            return
        if not self._may_write():
            series.waiting = False
            self.stats.dropped += 1
            return
        series.sent_at, count = now, series.count
        try:
            await (self._patch(series) if series.created else self._create(series))
        except Transient as error:
            self._retry(series, error, now, asked_s=error.retry_after)
        except Forbidden as error:
            if error.terminating:
                self._drop(series, error)
            else:  # a server that has just begun knows no rights yet
                self._retry(series, error, now)
        except ApiError as error:
            self._drop(series, error)
        else:
            series.attempts, series.waiting = 0, False
            self.stats.sent += 1
            if series.count > count:
                self._enqueue(series, now + _PATCH_PERIOD_S)

    async def _create(self, series: _Series) -> None:
        ref = series.ref
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": ref.namespace or "default"},
            "involvedObject": {
                "apiVersion": ref.api_version,
                "kind": ref.kind,
                "name": ref.name,
                "uid": ref.uid,
                **({"namespace": ref.namespace} if ref.namespace else {}),
                **({"resourceVersion": ref.resource_version} if ref.resource_version else {}),
            },
            "type": series.type,
            "reason": series.reason,
            "message": series.message,
            "count": series.count,
            "firstTimestamp": _stamp(series.first),
            "lastTimestamp": _stamp(series.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }
        try:
            read_object(await self._api.create(_collection(ref), body), path=series.path)
        except AlreadyExists:  # an earlier answer was lost
            pass
        series.created = True

    async def _patch(self, series: _Series) -> None:
        body = {"count": series.count, "lastTimestamp": _stamp(series.last), "message": series.message}
        try:
            read_object(await self._api.merge_patch(series.path, body), path=series.path)
        except NotFound:  # it has expired on the server
            await self._create(series)

    def _retry(self, series: _Series, error: ApiError, now: float, *, asked_s: float | None = None) -> None:
        series.attempts += 1
        if series.attempts >= _ATTEMPTS_MAX or self._ending.is_set():
            self._drop(series, error)
            return
        delay = max(retry_delay(series.attempts, chance=random.random(), base_s=1.0), asked_s or 0.0)
        self._enqueue(series, now + delay)

    def _drop(self, series: _Series, error: ApiError) -> None:
        series.attempts, series.waiting = 0, False
        self.stats.dropped += 1
        word = f"{type(error).__name__} {error.reason}"
        level = logging.DEBUG if word == self._refused else logging.WARNING
        self._refused = word
        log.log(level, "event dropped", extra={"reason": series.reason, "object": series.ref.name, "error": str(error)})


def cut_message(message: str) -> str:
    """Return `message` within the bytes an Event's message may have, with an ellipsis where it was cut."""
    data = message.encode()
    if len(data) <= MESSAGE_MAX:
        return message
    return data[: MESSAGE_MAX - 3].decode(errors="ignore") + "…"


def _collection(ref: ObjectRef) -> str:
    return f"/api/v1/namespaces/{ref.namespace or 'default'}/events"


def _event_name(name: str) -> str:
    return f"{name[:_NAME_MAX].rstrip('.-')}.{random.getrandbits(64):016x}"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _forget(remembered: OrderedDict[tuple[str, ...], Any]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)

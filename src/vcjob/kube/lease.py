"""The leader: one process at a time that may write, agreed on through a Lease.

Owns the Lease object and the knowledge of who leads. The law it keeps: two processes never both believe to lead. A
leader counts from before it sent its last successful renewal, a candidate from after it saw the Lease change; so the
leader's time is over before the candidate's wait is, whatever the two wall clocks say. Times are of a clock that counts
while the machine is suspended. Whoever writes asks `assert_leading()` first: a process that was frozen past its time
notices before it does harm.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from vcjob.kube.answers import read_typed
from vcjob.kube.backoff import spread
from vcjob.kube.clock import ServerClock, steady
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, ServerError, WentBack

__all__ = ("LeaseApi", "LeaseElector", "LeaseTimes", "NotLeading")

log = logging.getLogger(__name__)

_RELEASE_TIMEOUT_S: Final = 3.0
_CALL_TIMEOUT_S: Final = 5.0  # below the time in which a renewal must succeed, so that there is a second try


class NotLeading(Exception):
    """This process does not lead, or cannot be sure that it still does: it must not write."""


class LeaseApi(Protocol):
    """What the elector needs of an API client."""

    @property
    def clock(self) -> ServerClock: ...

    async def get(self, path: str, *, timeout_s: float = ...) -> bytes: ...

    async def create(self, path: str, body: dict[str, Any]) -> bytes: ...

    async def put(self, path: str, body: dict[str, Any]) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Seconds. The same as those of Kubernetes' own controllers."""

    duration_s: float = 15.0  # candidates wait as long after the last sign of life
    renew_deadline_s: float = 10.0  # the leader steps down when it could not renew for as long
    retry_period_s: float = 2.0  # between renewals, and between a candidate's looks

    def __post_init__(self) -> None:
        if not 0 < self.retry_period_s < self.renew_deadline_s < self.duration_s:
            raise ValueError(
                f"lease times must grow: retry {self.retry_period_s} s, deadline {self.renew_deadline_s} s, "
                f"duration {self.duration_s} s"
            )


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The Lease as it was last seen to change."""

    version: str
    spec: _Spec
    at: float  # steady


class LeaseElector:
    """Takes part in the election; `run()` it as long as the process lives."""

    def __init__(
        self,
        api: LeaseApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes | None = None,
        now: Callable[[], float] = steady,
    ) -> None:
        """`identity` must be unique to this process: the Pod's name with something random, say."""
        self._api = api
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._metadata = {"namespace": namespace, "name": name}
        self._times = times or LeaseTimes()
        self._now = now
        self._seen: _Seen | None = None
        self._newest = 0  # the Lease's resourceVersion
        self._sure_until = float("-inf")  # steady; until then nobody else can have taken the Lease
        self.identity = identity

    # For those who write

    @property
    def is_leader(self) -> bool:
        """Whether this process leads, at this very moment."""
        return self._now() < self._sure_until

    @property
    def leader(self) -> str:
        """The identity of the one who led when the Lease was last seen; "" when nobody did."""
        return (self._seen.spec.holder_identity or "") if self._seen else ""

    def assert_leading(self) -> None:
        """Raise NotLeading unless this process leads. Cheap; to be called right before each write."""
        if self._now() >= self._sure_until:
            raise NotLeading(f"{self.identity} does not hold the lease {self._path}")

    # Taking part

    async def run(self, on_started: Callable[[], Awaitable[None]], on_stopped: Callable[[], Awaitable[None]]) -> None:
        """Take part until cancelled.

        `on_started` runs as a task of its own from each election on and is cancelled when the lead is lost;
        `on_stopped` is awaited after it has ended. Then the process is a candidate again. On cancellation the Lease is
        given back after `on_stopped`, so that a candidate need not wait for it to run out. An error of `on_started`
        gives the Lease back, too, and is raised. Raises WentBack.
        """
        while True:
            try:
                await self._wait_for_lead()
                await self._lead(on_started, on_stopped)
            finally:
                await self._release()
            # Who leads now is heard by the next try only; until then our own name stands there.
            others = {"leader": self.leader} if self.leader != self.identity else {}
            log.warning("lead lost", extra={"identity": self.identity, **others})

    async def _lead(self, on_started: Callable[[], Awaitable[None]], on_stopped: Callable[[], Awaitable[None]]) -> None:
        log.info("leading", extra={"identity": self.identity, "lease": self._path})
        work = asyncio.ensure_future(on_started())
        try:
            await self._keep_lead(work)
        finally:
            await _end(work)
            await on_stopped()

    async def _wait_for_lead(self) -> None:
        while True:
            if await self._try("candidate"):
                return
            await asyncio.sleep(spread(self._times.retry_period_s, chance=random.random()))

    async def _keep_lead(self, work: "asyncio.Future[None]") -> None:
        """Renew until the lead is lost; raises what `work` raises."""
        while True:
            left = self._sure_until - self._now()
            if left <= 0:
                return
            await _sleep_beside(work, min(self._times.retry_period_s, left))
            left = self._sure_until - self._now()
            if left <= 0:
                return  # frozen, or slow: perhaps somebody else leads by now
            try:
                async with asyncio.timeout(left):
                    await self._try("leader")
            except TimeoutError:
                return
            if self._seen is not None and self._seen.spec.holder_identity != self.identity:
                self._sure_until = float("-inf")  # taken from us
                return

    async def _try(self, role: str) -> bool:
        """Take or renew the Lease if that may be; False when it is another's or the server did not let us."""
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                return await self._take_or_renew()
        except (ApiError, TimeoutError) as error:
            if isinstance(error, Conflict | AlreadyExists):
                self._seen_version_is_old()
                return False
            log.warning("lease call failed, will retry", extra={"role": role, "error": str(error) or "timed out"})
            return False

    async def _take_or_renew(self) -> bool:
        seen = self._seen
        # A leader that knows the newest version writes at once; a lost race shows as a conflict.
        if seen is None or seen.spec.holder_identity != self.identity or not seen.version:
            try:
                self._note(
                    read_typed(await self._api.get(self._path, timeout_s=_CALL_TIMEOUT_S), _Lease, path=self._path)
                )
            except NotFound:
                return await self._write(None)
            seen = self._seen
            assert seen is not None
            if not self._is_free(seen):
                return False
        return await self._write(seen)

    def _is_free(self, seen: _Seen) -> bool:
        holder = seen.spec.holder_identity
        if not holder or holder == self.identity:
            return True
        duration = max(float(seen.spec.lease_duration_seconds or 0), 0.0) or self._times.duration_s
        return self._now() >= seen.at + duration

    async def _write(self, seen: _Seen | None) -> bool:
        began = self._now()  # before the request: the others count from when they see it
        stamp = self._api.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = seen is not None and seen.spec.holder_identity == self.identity
        transitions = 0 if seen is None else (seen.spec.lease_transitions or 0)
        spec = _Spec(
            holder_identity=self.identity,
            lease_duration_seconds=max(1, round(self._times.duration_s)),
            acquire_time=(seen.spec.acquire_time if ours and seen is not None else None) or stamp,
            renew_time=stamp,
            lease_transitions=transitions if ours or seen is None else transitions + 1,
        )
        answer = await self._send(spec, seen)
        self._sure_until = began + self._times.renew_deadline_s
        self._note(answer)
        return True

    async def _send(self, spec: _Spec, seen: _Seen | None) -> _Lease:
        body: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": dict(self._metadata),
            "spec": msgspec.to_builtins(spec),
        }
        if seen is None:
            answer = await self._api.create(self._collection, body)
        else:
            body["metadata"]["resourceVersion"] = seen.version
            answer = await self._api.put(self._path, body)
        lease = read_typed(answer, _Lease, path=self._path)
        is_old = seen is not None and lease.metadata.resource_version == seen.version
        if is_old or (lease.spec.holder_identity or "") != spec.holder_identity:
            raise ServerError(f"the answer about {self._path} is not what was written", path=self._path)
        return lease

    def _note(self, lease: _Lease) -> None:
        # Any change is a sign of life; when it was made is not read from the Lease, whose clock is another's.
        if self._seen is None or self._seen.version != lease.metadata.resource_version:
            self._seen = _Seen(version=lease.metadata.resource_version, spec=lease.spec, at=self._now())
        newest, version = self._newest, lease.metadata.resource_version
        if not version.isdecimal():
            return
        self._newest = int(version)
        if self._newest < newest:
            raise WentBack(self._path, version=self._newest, after=newest)

    def _seen_version_is_old(self) -> None:
        if self._seen is not None:
            self._seen = _Seen(version="", spec=self._seen.spec, at=self._seen.at)

    async def _release(self) -> None:
        """Give the Lease back if it is still ours; the next leader need not wait then."""
        was_sure = self.is_leader
        self._sure_until = float("-inf")
        if not was_sure:
            return
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                try:
                    await self._write_release()
                except Conflict:
                    # A renewal that was cut off by our own stopping has taken effect after all.
                    self._seen_version_is_old()
                    await self._write_release()
        except (ApiError, TimeoutError) as error:
            log.warning("lease not released, it will run out", extra={"error": str(error) or "timed out"})

    async def _write_release(self) -> None:
        if self._seen is None or not self._seen.version:
            self._note(read_typed(await self._api.get(self._path, timeout_s=_CALL_TIMEOUT_S), _Lease, path=self._path))
        seen = self._seen
        if seen is None or seen.spec.holder_identity != self.identity:
            return
        spec = _Spec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=seen.spec.acquire_time,
            renew_time=self._api.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            lease_transitions=seen.spec.lease_transitions,
        )
        self._note(await self._send(spec, seen))


async def _sleep_beside(work: "asyncio.Future[None]", seconds: float) -> None:
    """Sleep; raise at once what `work` raises meanwhile."""
    if work.done():  # it has nothing more to do, and the lead is kept
        await asyncio.sleep(seconds)
        return
    await asyncio.wait([work], timeout=seconds)
    if work.done() and not work.cancelled() and (error := work.exception()) is not None:
        raise error


async def _end(work: "asyncio.Future[None]") -> None:
    if work.done():
        return
    work.cancel()
    await asyncio.wait([work])
    if not work.cancelled() and (error := work.exception()) is not None:
        log.error("work of the leader failed while ending", exc_info=error)

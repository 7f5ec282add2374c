"""The election: who leads when, in simulated time. The Lease lives in memory; one test speaks to the fake server."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.kube.conftest import SimulatedLoop, simulate, until
from tests.unit.kube.fake_server import Answer, FakeServer

from vcjob.kube.client import ApiClient
from vcjob.kube.clock import ServerClock
from vcjob.kube.errors import AlreadyExists, Conflict, NotFound, ServerError, Unreachable, WentBack
from vcjob.kube.lease import LeaseElector, LeaseTimes, NotLeading


class MemoryLease:
    """A Lease as the API server keeps it: versions, conflicts; and its bad days."""

    def __init__(self) -> None:
        self.clock = ServerClock()
        self.lease: dict[str, Any] | None = None
        self.down = False
        self.hangs = False
        self.loses_answers = False
        self.lies: dict[str, Any] | None = None  # the answer to every write, none of which takes effect
        self.version = 0  # of the store, before the Lease is made

    @property
    def holder(self) -> str:
        return self.lease["spec"].get("holderIdentity", "") if self.lease else ""

    async def get(self, path: str, *, timeout_s: float = 30.0) -> bytes:
        await self._trouble()
        if self.lease is None:
            raise NotFound("no such lease", code=404)
        return json.dumps(self.lease).encode()

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        await self._trouble()
        if self.lease is not None:
            raise AlreadyExists("there", code=409)
        return self._store(body)

    async def put(self, path: str, body: dict[str, Any]) -> bytes:
        await self._trouble()
        if self.lease is None or body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("modified", code=409)
        return self._store(body)

    def _store(self, body: dict[str, Any]) -> bytes:
        if self.lies is not None:
            return json.dumps(self.lies).encode()
        before = int(self.lease["metadata"]["resourceVersion"]) if self.lease else self.version
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(before + 1)}}
        if self.loses_answers:
            raise Unreachable("the answer was lost")
        return json.dumps(self.lease).encode()

    async def _trouble(self) -> None:
        if self.hangs:
            await asyncio.sleep(3600)
        if self.down:
            raise ServerError("down", code=503)


class Process:
    """One replica; `frozen_s` is time that passed for everybody but its own timers."""

    def __init__(self, lease: MemoryLease, name: str, loop: SimulatedLoop) -> None:
        self.frozen_s = 0.0
        self.log: list[str] = []
        self.elector = LeaseElector(
            lease, namespace="system", name="leader", identity=name, now=lambda: loop.now + self.frozen_s
        )
        self.task = asyncio.create_task(self.elector.run(self._started, self._stopped))

    async def _started(self) -> None:
        self.log.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("ended")

    async def _stopped(self) -> None:
        self.log.append("stopped")

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def replicas(lease: MemoryLease, loop: SimulatedLoop, *names: str) -> AsyncIterator[list[Process]]:
    made = []
    for name in names:
        made.append(Process(lease, name, loop))
        await asyncio.sleep(0.1)  # simulated: the first named is the first to come
    try:
        yield made
    finally:
        for process in made:
            await process.end()


def test_the_first_to_come_leads_and_the_other_waits() -> None:
    async def story(loop: SimulatedLoop) -> None:
        async with replicas(MemoryLease(), loop, "a", "b") as (a, b):
            await asyncio.sleep(300)
            assert (a.elector.is_leader, b.elector.is_leader, b.elector.leader) == (True, False, "a")
            assert (a.log, b.log) == (["started"], [])

    simulate(story)


def test_a_released_lease_is_taken_within_moments() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a", "b") as (a, b):
            await asyncio.sleep(60)
            await a.end()
            assert (a.log, lease.holder) == (["started", "ended", "stopped"], "")
            await asyncio.sleep(2.5)
            assert b.elector.is_leader

    simulate(story)


def test_nobody_leads_by_an_answer_that_is_not_about_what_was_written() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(5)
            assert a.elector.is_leader
            assert lease.lease is not None
            lease.lies = copy.deepcopy(lease.lease)  # its own, but of before
            await asyncio.sleep(20)
            assert not a.elector.is_leader
            spec = lease.lease["spec"] | {"holderIdentity": "other"}
            lease.lies = {"metadata": {"resourceVersion": "99"}, "spec": spec}
            await asyncio.sleep(60)
            assert not a.elector.is_leader
            lease.lies = None
            await asyncio.sleep(20)
            assert a.elector.is_leader

    simulate(story)


def test_a_lease_is_released_though_the_last_renewal_was_cut_off() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(1)
            assert lease.lease is not None
            lease.lease["metadata"]["resourceVersion"] = "999"  # our own renewal, whose answer never came
            await a.end()
            assert lease.holder == ""

    simulate(story)


def test_a_killed_leader_is_followed_after_the_lease_has_run_out() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a", "b") as (a, b):
            await asyncio.sleep(1)
            lease.down = True  # so that nothing is released
            await a.end()
            lease.down = False
            await asyncio.sleep(12)
            assert not b.elector.is_leader
            await asyncio.sleep(6)
            assert b.elector.is_leader
            assert lease.lease is not None
            assert lease.lease["spec"]["leaseTransitions"] == 1

    simulate(story)


def test_a_leader_that_cannot_renew_stops_before_another_may_start() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(1)
            lease.down = True
            await asyncio.sleep(8)
            assert a.elector.is_leader
            await asyncio.sleep(3)
            assert (a.elector.is_leader, a.log) == (False, ["started", "ended", "stopped"])
            lease.down = False
            await asyncio.sleep(5)
            assert a.elector.is_leader  # a candidate again, and nobody else came

    simulate(story)


def test_a_call_that_hangs_does_not_keep_the_lead_beyond_its_time() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(1)
            lease.hangs = True
            await asyncio.sleep(10.5)
            assert not a.elector.is_leader
            lease.hangs = False

    simulate(story)


def test_a_frozen_leader_notices_before_it_writes() -> None:
    async def story(loop: SimulatedLoop) -> None:
        async with replicas(MemoryLease(), loop, "a") as (a,):
            await asyncio.sleep(1)
            a.elector.assert_leading()
            a.frozen_s += 60  # suspended: no timer has fired yet
            with pytest.raises(NotLeading):
                a.elector.assert_leading()
            await asyncio.sleep(2.1)
            assert a.log[:3] == ["started", "ended", "stopped"]

    simulate(story)


def test_a_leader_whose_lease_was_taken_steps_down() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(1)
            assert lease.lease is not None
            lease.lease["spec"]["holderIdentity"] = "thief"
            lease.lease["metadata"]["resourceVersion"] = "999"
            await asyncio.sleep(5)
            assert (a.elector.is_leader, a.elector.leader) == (False, "thief")

    simulate(story)


def test_a_renewal_whose_answer_was_lost_does_not_cost_the_lead() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        async with replicas(lease, loop, "a") as (a,):
            await asyncio.sleep(1)
            lease.loses_answers = True
            await asyncio.sleep(2)
            lease.loses_answers = False
            await asyncio.sleep(60)
            assert (a.elector.is_leader, a.log) == (True, ["started"])

    simulate(story)


@pytest.mark.parametrize("is_lost", [False, True], ids=["with an older Lease", "before there was one"])
def test_a_server_that_went_back_in_time_ends_leader_and_candidates(is_lost: bool) -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        lease.version = 1000
        async with replicas(lease, loop, "a", "b") as (a, b):
            await asyncio.sleep(20)
            assert lease.lease is not None
            lease.version = 7
            lease.lease = None if is_lost else {"metadata": {"resourceVersion": "8"}, "spec": lease.lease["spec"]}
            done, _ = await asyncio.wait((a.task, b.task), timeout=5)
            for task in done:
                with pytest.raises(WentBack, match=r"has version \d+ after 101\d$"):
                    task.result()
            assert (len(done), lease.holder) == (2, "")  # the next to come need not wait

    simulate(story)


def test_at_most_one_leads_at_any_time() -> None:
    """Three replicas under a server that comes and goes, and freezes of each: sampled every tenth of a second."""

    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()
        led: set[str] = set()
        async with replicas(lease, loop, "a", "b", "c") as processes:
            for step in range(6000):
                lease.down = step % 700 < 130
                lease.loses_answers = step % 310 < 20
                if step % 900 == 450:
                    await max(processes, key=lambda p: p.elector.is_leader).end()
                    processes[:] = [p for p in processes if not p.task.done()] + [Process(lease, f"n{step}", loop)]
                await asyncio.sleep(0.1)
                leaders = [p.elector.identity for p in processes if p.elector.is_leader]
                assert len(leaders) <= 1
                led.update(leaders)
        assert len(led) > 3

    simulate(story)


def test_an_error_of_the_work_gives_the_lease_back_and_is_raised() -> None:
    async def story(loop: SimulatedLoop) -> None:
        lease = MemoryLease()

        async def fails() -> None:
            await asyncio.sleep(3)
            raise RuntimeError("work")

        async def stopped() -> None:
            pass

        elector = LeaseElector(lease, namespace="s", name="l", identity="a", now=loop.time)
        with pytest.raises(RuntimeError, match="work"):
            await elector.run(fails, stopped)
        assert lease.holder == ""

    simulate(story)


def test_times_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="must grow"):
        LeaseTimes(duration_s=10, renew_deadline_s=10)


async def test_the_lease_on_the_wire(api: ApiClient, server: FakeServer) -> None:
    async def nothing() -> None:
        pass

    server.inject(Answer(code=503), verb="POST")
    times = LeaseTimes(duration_s=1.5, renew_deadline_s=1.0, retry_period_s=0.02)
    elector = LeaseElector(api, namespace="system", name="leader", identity="me", times=times)
    task = asyncio.create_task(elector.run(nothing, nothing))
    await until(lambda: server.count("PUT") >= 2)
    leases = "/apis/coordination.k8s.io/v1/leases"
    held = server.get(leases, "system", "leader")
    assert held is not None
    assert (held["spec"]["holderIdentity"], held["spec"]["leaseDurationSeconds"]) == ("me", 2)
    assert held["spec"]["renewTime"].endswith("Z")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    released = server.get(leases, "system", "leader")
    assert released is not None
    assert released["spec"]["holderIdentity"] == ""

"""Several replicas: one works, another takes over, and one that was frozen does no harm when it wakes."""

import asyncio
import signal
import time

import pytest
from tests.integration.conftest import StartOperator
from tests.integration.harness.api import JOBS, LEASES, Api, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import job, pods_of, pods_when, task
from tests.integration.harness.operator import OperatorProcess

from vcjob.cluster.manifests import OPERATOR_NAMESPACE, OPERATOR_USER

LEASE = "vcjob-controller-manager"
LEASE_S = 15.0

pytestmark = pytest.mark.xdist_group("leader")  # there is one Lease a cluster


async def holder(api: Api) -> str:
    found = await api.find(LEASES, LEASE, OPERATOR_NAMESPACE)
    return (found or {}).get("spec", {}).get("holderIdentity") or ""


async def leads(process: OperatorProcess) -> bool:
    _, page = await process.get(f"{process.metrics_url}/metrics")
    return "\nvcjob_leading 1.0" in page


async def test_replicas_take_over_from_each_other(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    flags = ("--namespace", namespace, "--leader-elect", "--leader-elect-namespace", OPERATOR_NAMESPACE)
    first = await operator(*flags)
    await eventually(lambda: leads(first))
    second = await operator(*flags)  # ready, too: it is there to take over
    assert not await leads(second)
    first_name = await holder(api)

    # One works.
    mark = control_plane.audit.mark()
    await api.create(JOBS, job("one", task("w", 2), plugins={"svc": []}), namespace)
    await pods_when(api, "one", namespace, count=2)
    writes = control_plane.audit.calls(since=mark, user=OPERATOR_USER, resource="pods")
    assert [call.code for call in writes] == [201, 201]

    # The leader freezes with work before it.
    assert first.process is not None
    frozen_at = time.monotonic()
    first.process.send_signal(signal.SIGSTOP)
    await api.create(JOBS, job("two", task("w", 300, pod={"schedulerName": "nobody"})), namespace)
    await eventually(lambda: leads(second), timeout_s=LEASE_S + 10)
    assert time.monotonic() - frozen_at >= LEASE_S - 5.0, "a lease was taken before it had run out"
    assert await holder(api) != first_name
    await pods_when(api, "two", namespace, count=300, timeout_s=60)

    # It wakes: what it writes now would be written by two.
    await asyncio.sleep(1.0)
    mark = control_plane.audit.mark()
    first.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(3.0)
    assert not await leads(first)
    calls = control_plane.audit.calls(since=mark, user=OPERATOR_USER)
    assert [(call.verb, call.resource) for call in calls if call.resource != "leases"] == []
    assert "Traceback" not in first.last_lines(200)

    # The new leader stops and gives the lease back: no waiting.
    assert await second.stop() == 0
    given_back = time.monotonic()
    await eventually(lambda: leads(first), timeout_s=LEASE_S)
    assert time.monotonic() - given_back < 6.0
    await api.create(JOBS, job("three", task("w", 2)), namespace)
    await pods_when(api, "three", namespace, count=2)

    # The leader crashes half-way through its work.
    await second.start()
    await api.create(JOBS, job("four", task("w", 200, pod={"schedulerName": "nobody"})), namespace)
    await eventually(lambda: pods_of(api, "four", namespace), every_s=0.01)
    await first.kill()
    await eventually(lambda: leads(second), timeout_s=LEASE_S + 10)
    await pods_when(api, "four", namespace, count=200, timeout_s=60)

"""Which events of the Jobs' watch tell the engine nothing new."""

import asyncio
import json
from typing import Any

import pytest
from tests.unit.controller.cluster import JOBS, Cluster
from tests.unit.controller.operator import SimLoop, SimOperator

from vcjob.gang.none import NoGang

RAW: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}],
    },
}


@pytest.fixture
def operator() -> SimOperator:
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    cluster = Cluster()
    loop.cluster = cluster
    cluster.create(JOBS, RAW)
    return SimOperator(cluster, gang=NoGang(gang_scheduler_name="none"))


def event(operator: SimOperator, *, kind: str = "MODIFIED", newer: int = 0, **metadata: Any) -> bytes:
    raw = operator.cluster.get(JOBS, "j")
    assert raw is not None
    version = str(int(raw["metadata"]["resourceVersion"]) + newer)
    meta = {**raw["metadata"], "resourceVersion": version, **metadata}
    return json.dumps({"type": kind, "object": {**raw, "metadata": meta}}).encode()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_a_version_that_is_known_is_no_news(operator: SimOperator, kind: str):
    assert operator.engine.knows(event(operator, kind=kind))
    assert operator.engine.knows(event(operator, kind=kind, newer=-1))


def test_all_else_is(operator: SimOperator):
    assert not operator.engine.knows(event(operator, newer=1))
    assert not operator.engine.knows(event(operator, kind="DELETED"))
    assert not operator.engine.knows(event(operator, uid="another"))
    assert not operator.engine.knows(event(operator, name="other"))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"BOOKMARK","object":{"kind":"Job","metadata":{"resourceVersion":"9"}}}',
        b'{"type":"ERROR","object":{"kind":"Status","code":410}}',
        b"nonsense",
        b"",
    ],
)
def test_what_is_no_event_of_a_job_goes_through(operator: SimOperator, line: bytes):
    assert not operator.engine.knows(line)

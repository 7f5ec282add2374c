"""Which versions of a Job the engine takes for news, and when it stops to doubt its own."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.controller.cluster import JOBS, PODS, Cluster
from tests.unit.controller.operator import SimLoop, SimOperator

from vcjob.controller.doubt import DOUBT_S, Doubt
from vcjob.controller.memory import JobMemory
from vcjob.gang.none import NoGang
from vcjob.kube.forms import Identity, read_line
from vcjob.lifecycle.status import Status

TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
RAW: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}],
    },
}


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    made = SimLoop()
    asyncio.set_event_loop(made)
    yield made
    made.close()


@pytest.fixture
def operator(loop: SimLoop) -> SimOperator:
    loop.cluster = cluster = Cluster()
    cluster.create(JOBS, RAW)
    return SimOperator(cluster, gang=NoGang(gang_scheduler_name="none"))


def event(operator: SimOperator, *, kind: str = "MODIFIED", newer: int = 0, **metadata: Any) -> Identity:
    raw = operator.cluster.get(JOBS, "j")
    assert raw is not None
    version = str(int(raw["metadata"]["resourceVersion"]) + newer)
    meta = {**raw["metadata"], "resourceVersion": version, **metadata}
    told = read_line(json.dumps({"type": kind, "object": {**raw, "metadata": meta}}).encode())
    assert isinstance(told, Identity)
    return told


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_a_version_that_is_known_is_no_news(operator: SimOperator, kind: str):
    assert operator.engine.view.knows(event(operator, kind=kind))
    assert operator.engine.view.knows(event(operator, kind=kind, newer=-1))


def test_all_else_is(operator: SimOperator):
    assert not operator.engine.view.knows(event(operator, newer=1))
    assert not operator.engine.view.knows(event(operator, kind="DELETED"))
    assert not operator.engine.view.knows(event(operator, uid="another"))
    assert not operator.engine.view.knows(event(operator, name="other"))


def test_a_template_cannot_say_of_its_pods_what_the_operator_says(loop: SimLoop):
    """Whoever copies the metadata of a living Pod has these marks in it."""
    marks = {"vcjob/evicted-at": "100", "volcano.sh/controller-out-of-sync": "true", "own": "kept"}
    task = {**RAW["spec"]["tasks"][0], "template": {"metadata": {"annotations": marks}, **TEMPLATE}}
    loop.cluster = cluster = Cluster()
    cluster.create(JOBS, {**RAW, "spec": {**RAW["spec"], "tasks": [task]}})
    operator = SimOperator(cluster, gang=NoGang(gang_scheduler_name="none"))
    while loop.run_until_complete(operator.work()):
        pass
    (pod,) = cluster.all(PODS)
    assert pod["metadata"]["annotations"]["own"] == "kept"
    assert not {"vcjob/evicted-at", "volcano.sh/controller-out-of-sync"} & pod["metadata"]["annotations"].keys()


@pytest.mark.parametrize(("age", "doubted"), [(1.0, True), (DOUBT_S + 1, False), (-DOUBT_S, False)])
def test_a_write_without_an_answer_is_not_doubted_for_ever(
    loop: SimLoop, operator: SimOperator, age: float, doubted: bool
):
    """It had no effect and the status needs no other write, so nothing else would end the doubt."""
    while loop.run_until_complete(operator.work()):
        pass
    record = operator.engine.view.job(("ns", "j"))
    assert record is not None
    memory: JobMemory = operator.engine._memories[record.key]
    memory.doubt = Doubt(
        since=operator.cluster.now - age,
        before=record.status.phase,
        status=Status(message="never written"),
        events=(),
        by_command=False,
    )
    loop.run_until_complete(operator.engine._pass(record.key))
    assert (memory.doubt is not None) == doubted

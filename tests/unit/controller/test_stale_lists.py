"""A process that has just begun may have been told of the past."""

from typing import Any

import pytest
from tests.unit.controller.binary import pod_answer, pod_list, pod_message
from tests.unit.controller.operator import EventLog
from tests.unit.lifecycle.builders import failed, job, running, succeeded

from vcjob.controller.decode_pods import decode_pod
from vcjob.controller.engine import Engine
from vcjob.gang.none import NoGang
from vcjob.lifecycle.causes import shows_the_past

two = job().task("w", 2)


@pytest.mark.parametrize(
    ("snapshot", "past"),
    [
        pytest.param(two.running(version=1).pod(failed("w", 0), running("w", 1)), True, id="a Pod that had failed"),
        pytest.param(two.pending(version=1).pod(succeeded("w", 0)), True, id="a Pod that had succeeded"),
        pytest.param(two.running(version=1).pod(running("w", 0)), False, id="an old Pod that is alive"),
        pytest.param(two.running().pod(failed("w", 0)), False, id="a Pod of the present"),
        pytest.param(two.phase("Completed", version=1).pod(failed("w", 0)), False, id="a Job that has ended"),
    ],
)
def test_ended_pods_of_an_earlier_version_are_doubted(snapshot, past: bool):
    assert shows_the_past(snapshot.make()) is past


def pod(uid: str, *, version: int, name: str = "j-w-0") -> dict[str, Any]:
    labels = {"volcano.sh/job-name": "j"}
    meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"phase": "Running"}}


class Server:
    """Has one Pod."""

    async def get(self, path: str, **_: Any) -> bytes:
        return pod_list([pod_message(pod("new", version=15))], version=20)


async def test_reading_the_pods_anew_forgets_what_is_no_more_and_keeps_what_is_newer():
    engine = Engine(
        Server(),  # type: ignore[arg-type]
        gang=NoGang(gang_scheduler_name="volcano"),
        observer=EventLog(),
        assert_leading=lambda: None,
    )
    raw = {"namespace": "ns", "name": "j", "uid": "u", "resourceVersion": "1"}
    engine.view.take_job({"metadata": raw, "spec": {"tasks": []}})
    for known in (
        pod("old", version=5),
        pod("gone", version=6, name="j-w-1"),
        pod("newer", version=25, name="j-w-2"),
    ):
        engine.view.pods.store.put(decode_pod(pod_answer(known)))
    record = engine.view.job(("ns", "j"))
    assert record is not None
    await engine.view.read_pods(record)
    assert {known.uid for known in engine.view.pods_of(record).values()} == {"new", "newer"}

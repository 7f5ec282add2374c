"""A pass that ends by an error: what is told of it, and what is not."""

from typing import Any

import pytest
from tests.unit.controller.operator import EventLog

from vcjob.controller.engine import Engine
from vcjob.controller.observer import PassResult
from vcjob.gang.none import NoGang
from vcjob.kube.lease import NotLeading

KEY = ("ns", "j")
LOST, WRONG = NotLeading("not any more"), ValueError("x is wrong")


class Log(EventLog):
    def __init__(self) -> None:
        super().__init__()
        self.results: list[PassResult] = []

    def pass_ended(self, result: PassResult, took_s: float) -> None:
        self.results.append(result)


@pytest.mark.parametrize(
    ("error", "result", "told"),
    [
        pytest.param(LOST, PassResult.SUCCESS, [], id="the lead was lost"),
        pytest.param(ExceptionGroup("tasks", [LOST, LOST]), PassResult.SUCCESS, [], id="between many writes"),
        pytest.param(WRONG, PassResult.ERROR, ["ValueError: x is wrong"], id="a fault"),
        pytest.param(
            ExceptionGroup("tasks", [ExceptionGroup("more", [WRONG]), LOST]),
            PassResult.ERROR,
            ["ValueError: x is wrong"],
            id="a fault between many writes",
        ),
    ],
)
async def test_a_lost_lead_is_no_fault_of_the_job(error: Exception, result: PassResult, told: list[str]):
    log = Log()
    engine = Engine(
        None,  # type: ignore[arg-type]
        gang=NoGang(gang_scheduler_name="volcano"),
        observer=log,
        assert_leading=lambda: None,
    )
    raw = {"namespace": "ns", "name": "j", "uid": "u", "resourceVersion": "1"}
    engine.view.take_job({"metadata": raw, "spec": {"tasks": []}})

    async def look(key: Any, memory: Any) -> None:
        raise error

    engine._reconciler.look = look  # type: ignore[assignment,method-assign]
    await engine._look(await engine.queue.get())
    assert log.results == [result]
    assert [note.message.partition("tries again: ")[2] for note in log.events] == told

"""The event recorder: what is told, counted and dropped, in simulated time. The API is a dict of Events in memory."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.kube.conftest import SimulatedLoop, simulate
from tests.unit.kube.fake_server import FakeServer

from vcjob.kube.client import ApiClient
from vcjob.kube.clock import ServerClock
from vcjob.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound, ServerError, Unreachable
from vcjob.kube.events import EventRecorder, ObjectRef, cut_message

JOB = ObjectRef(api_version="batch.volcano.sh/v1alpha1", kind="Job", namespace="default", name="train", uid="u1")


class MemoryEvents:
    def __init__(self) -> None:
        self.clock = ServerClock()
        self.events: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.refusals: list[ApiError] = []
        self.loses_answer = False
        self.hangs = False
        self.takes_s = 0.0
        self.told_first = asyncio.Event()

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        await self._call("POST")
        name = body["metadata"]["name"]
        if name in self.events:
            raise AlreadyExists("there")
        self.events[name] = dict(body)
        self.told_first.set()
        if self.loses_answer:
            self.loses_answer = False
            raise Unreachable("lost")
        return self._stored(name)

    def _stored(self, name: str) -> bytes:
        return json.dumps(
            {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}}
        ).encode()

    async def merge_patch(self, path: str, body: dict[str, Any]) -> bytes:
        await self._call("PATCH")
        name = path.rpartition("/")[2]
        if name not in self.events:
            raise NotFound("expired")
        self.events[name] |= body
        return self._stored(name)

    async def _call(self, verb: str) -> None:
        self.calls.append(verb)
        await asyncio.sleep(3600 if self.hangs else self.takes_s)
        if self.refusals:
            raise self.refusals.pop(0)

    def told(self) -> list[tuple[str, int]]:
        return [(event["message"], event["count"]) for event in self.events.values()]


def story(play: Callable[[EventRecorder, MemoryEvents], Awaitable[None]]) -> MemoryEvents:
    """Play with a running recorder and return what the API has at the end; time is simulated."""

    async def main(loop: SimulatedLoop) -> MemoryEvents:
        api = MemoryEvents()
        recorder = EventRecorder(api, instance="pod-0", now=loop.time)
        task = asyncio.create_task(recorder.run())
        await play(recorder, api)
        await recorder.stop(deadline_s=5)
        await asyncio.gather(task, return_exceptions=True)
        return api

    return simulate(main)


def test_what_is_over_is_forgotten() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for number in range(100):
            recorder.record(replace(JOB, uid=f"u{number}"), "Normal", "R", "m")
        await asyncio.sleep(601)
        recorder.record(JOB, "Normal", "R", "m")
        assert (len(recorder._series), len(recorder._reasons)) == (1, 1)

    story(play)


def test_repeats_are_counted_in_one_event() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for _ in range(120):
            recorder.record(JOB, "Warning", "FailedCreate", "exceeded quota")
            await asyncio.sleep(1)

    api = story(play)
    assert api.told() == [("exceeded quota", 120)]
    assert len(api.calls) <= 6  # a create, a patch each 30 s and one at the end


def test_what_was_said_long_ago_is_said_anew() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for _ in range(2):
            recorder.record(JOB, "Normal", "Running", "all is well")
            await asyncio.sleep(700)

    assert story(play).told() == [("all is well", 1), ("all is well", 1)]


def test_many_similar_messages_are_combined() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for index in range(100):
            recorder.record(JOB, "Warning", "PodFailed", f"pod {index} failed")
            await asyncio.sleep(0.1)

    told = story(play).told()
    assert len(told) == 11
    assert told[-1] == ("(combined from similar events): pod 99 failed", 90)


def test_an_object_cannot_flood_but_the_first_of_each_reason_is_told() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for reason in range(40):
            for message in range(5):
                recorder.record(JOB, "Normal", f"Reason{reason}", f"message {message}")
        await asyncio.sleep(1)

    api = story(play)
    assert len(api.events) == 40 + 25
    assert {event["reason"] for event in api.events.values()} == {f"Reason{reason}" for reason in range(40)}


def test_two_objects_do_not_share_an_allowance() -> None:
    other = ObjectRef(api_version="v1", kind="Job", namespace="default", name="other", uid="u2")

    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for index in range(200):
            recorder.record(JOB, "Normal", f"R{index % 20}", f"{index}")
        recorder.record(other, "Normal", "R", "one")
        recorder.record(other, "Normal", "R", "two")

    told = story(play).told()
    assert [message for message, _ in told[-2:]] == ["one", "two"]


@pytest.mark.parametrize("error", [ServerError("down"), Unreachable("gone"), Forbidden("no rights are loaded yet")])
def test_a_transient_refusal_is_tried_again(error: ApiError) -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.refusals = [error, error]
        recorder.record(JOB, "Normal", "R", "m")
        await asyncio.sleep(60)

    assert story(play).told() == [("m", 1)]


def test_a_lost_answer_makes_no_second_event() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.loses_answer = True
        recorder.record(JOB, "Normal", "R", "m")
        await asyncio.sleep(60)

    assert story(play).told() == [("m", 1)]


def test_a_final_refusal_drops_one_event_and_no_other() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.refusals = [Forbidden("because it is being terminated")]
        recorder.record(JOB, "Normal", "R", "dropped")
        recorder.record(JOB, "Normal", "R", "told")
        await asyncio.sleep(1)
        assert recorder.stats.dropped == 1

    assert story(play).told() == [("told", 1)]


def test_an_event_that_expired_is_told_anew_with_its_count() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for _ in range(3):
            recorder.record(JOB, "Normal", "R", "m")
            await asyncio.sleep(40)
            api.events.clear()
        recorder.record(JOB, "Normal", "R", "m")
        await asyncio.sleep(40)

    assert story(play).told() == [("m", 4)]


def test_the_queue_is_bounded() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.hangs = True
        for index in range(5000):
            ref = ObjectRef(api_version="v1", kind="Job", namespace="default", name=f"j{index}", uid=str(index))
            recorder.record(ref, "Normal", "R", "m")
        assert recorder.stats.dropped == 904
        api.hangs = False

    story(play)


def test_stopping_tells_the_rest_within_its_deadline() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        for index in range(50):
            recorder.record(JOB, "Normal", f"R{index}", "m")
        recorder.record(JOB, "Normal", "R0", "m")

    assert sum(count for _, count in story(play).told()) == 51


def test_what_has_given_way_is_sent_at_the_end_warnings_first() -> None:
    async def main(loop: SimulatedLoop) -> list[str]:
        api = MemoryEvents()
        recorder = EventRecorder(api, instance="pod-0", is_busy=lambda: True, now=loop.time)
        task = asyncio.create_task(recorder.run())
        for number in range(1000):
            recorder.record(replace(JOB, name=f"j{number}"), "Normal", "R", "m")
        await asyncio.sleep(1)
        api.takes_s = 0.01
        recorder.record(JOB, "Warning", "R", "failed")
        await recorder.stop(deadline_s=1)
        await asyncio.gather(task, return_exceptions=True)
        return [message for message, _ in api.told()]

    told = simulate(main)
    assert told[0] == "failed"
    assert len(told) == 1001


def test_stopping_does_not_wait_for_a_server_that_hangs() -> None:
    async def main(loop: SimulatedLoop) -> float:
        api = MemoryEvents()
        api.hangs = True
        recorder = EventRecorder(api, instance="pod-0", now=loop.time)
        task = asyncio.create_task(recorder.run())
        recorder.record(JOB, "Normal", "R", "m")
        await asyncio.sleep(0)
        began = loop.time()
        await recorder.stop(deadline_s=5)
        await asyncio.gather(task, return_exceptions=True)
        return loop.time() - began

    assert simulate(main) == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize(
    ("busy_for_s", "told_after_s"),
    [
        pytest.param(3.0, 3.0, id="until the others are through"),
        pytest.param(60.0, 10.0, id="but not for ever"),
    ],
)
def test_an_event_gives_way_to_more_important_writes(busy_for_s: float, told_after_s: float) -> None:
    async def main(loop: SimulatedLoop) -> float:
        api, began = MemoryEvents(), loop.time()
        busy_until = began + busy_for_s
        recorder = EventRecorder(api, instance="pod-0", is_busy=lambda: loop.time() < busy_until, now=loop.time)
        task = asyncio.create_task(recorder.run())
        recorder.record(JOB, "Normal", "R", "m")
        await api.told_first.wait()
        told = loop.time() - began
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return told

    assert simulate(main) == pytest.approx(told_after_s, abs=0.5)


def test_a_request_that_hangs_holds_up_no_other_event() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.hangs = True
        recorder.record(JOB, "Normal", "R", "the first")
        await asyncio.sleep(1)
        api.hangs = False
        recorder.record(replace(JOB, name="other"), "Normal", "R", "the second")
        await asyncio.sleep(1)
        assert api.told() == [("the second", 1)]

    story(play)


def test_what_is_repeated_while_it_is_on_its_way_is_counted_later() -> None:
    async def play(recorder: EventRecorder, api: MemoryEvents) -> None:
        api.takes_s = 40.0
        recorder.record(JOB, "Warning", "R", "m")
        await asyncio.sleep(1)
        recorder.record(JOB, "Warning", "R", "m")
        await asyncio.sleep(34)
        assert api.calls == ["POST"]
        await asyncio.sleep(60)
        assert (api.calls, api.told()) == (["POST", "PATCH"], [("m", 2)])

    story(play)


def test_many_events_give_way_longer_and_too_many_not_at_all() -> None:
    async def told(loop: SimulatedLoop, count: int, *, within_s: float) -> int:
        recorder = EventRecorder(MemoryEvents(), instance="pod-0", is_busy=lambda: True, now=loop.time)
        task = asyncio.create_task(recorder.run())
        for number in range(count):
            recorder.record(replace(JOB, name=f"j{number}"), "Normal", "R", "m")
        await asyncio.sleep(within_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return recorder.stats.sent

    assert simulate(lambda loop: told(loop, 1000, within_s=39.0)) == 0
    assert simulate(lambda loop: told(loop, 1000, within_s=61.0)) == 1000
    assert simulate(lambda loop: told(loop, 3000, within_s=1.0)) == 3000 - 2048


@pytest.mark.parametrize(
    ("message", "length"),
    [("short", 5), ("x" * 1024, 1024), ("x" * 1025, 1024), ("é" * 600, 1023)],
)
def test_a_message_is_cut_to_its_bytes(message: str, length: int) -> None:
    assert len(cut_message(message).encode()) == length


async def test_the_event_on_the_wire(api: ApiClient, server: FakeServer) -> None:
    recorder = EventRecorder(api, instance="pod-0")
    task = asyncio.create_task(recorder.run())
    recorder.record(JOB, "Warning", "PodFailed", "pod train-worker-0 failed")
    await server.wait_for_calls("POST", 1)
    await recorder.stop(deadline_s=5)
    await task
    (event,) = server.objects("/api/v1/events")
    assert event["involvedObject"] == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "namespace": "default",
        "name": "train",
        "uid": "u1",
    }
    assert (event["source"], event["reportingComponent"], event["count"]) == (
        {"component": "vcjob-controller-manager"},
        "vcjob-controller-manager",
        1,
    )
    assert event["metadata"]["name"].startswith("train.")


async def test_who_may_not_write_tells_nothing() -> None:
    api = MemoryEvents()
    recorder = EventRecorder(api, instance="pod-0", may_write=lambda: False)
    task = asyncio.create_task(recorder.run())
    recorder.record(JOB, "Normal", "SuccessfulCreate", "Created 3 Pods")
    await recorder.stop(deadline_s=5)
    await asyncio.gather(task, return_exceptions=True)
    assert (api.calls, recorder.stats.dropped) == ([], 1)

"""A Command is not lost by a pass that does not come to its end."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.controller.operator import EventLog

from vcjob.controller.engine import Engine
from vcjob.controller.requests import CommandRequest
from vcjob.gang.none import NoGang
from vcjob.kube.errors import NotFound, ServerError
from vcjob.kube.lease import NotLeading

KEY = ("ns", "j")


class Server:
    """Knows the Job or not, and deletes Commands; `failure` is raised instead of the next deletion's answer."""

    def __init__(self, *, has_job: bool) -> None:
        self.has_job = has_job
        self.failure: BaseException | None = None
        self.deleted: list[str] = []

    async def get(self, path: str, **_: Any) -> bytes:
        if self.failure is not None:
            raise self.failure
        if path.endswith("/jobs"):
            assert not self.has_job
            return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": []})
        if not self.has_job:
            raise NotFound("no such Job", code=404)
        return msgspec.json.encode({"metadata": {"namespace": "ns", "name": "j", "uid": "u", "resourceVersion": "1"}})

    async def delete(self, path: str, **_: Any) -> bytes:
        if self.failure is not None:
            raise self.failure
        self.deleted.append(path.rpartition("/")[2])
        return b'{"kind":"Status","status":"Success"}'


def engine_with(server: Server, *, log: EventLog | None = None) -> Engine:
    made = Engine(
        server,  # type: ignore[arg-type]
        gang=NoGang(gang_scheduler_name="volcano"),
        observer=log or EventLog(),
        assert_leading=lambda: None,
    )
    for name in ("c1", "c2"):
        made.take_command(
            CommandRequest(namespace="ns", name=name, uid=name, action="AbortJob", target="j", target_uid="")
        )
    return made


async def take_turn(engine: Engine) -> None:
    await engine._look(await engine.queue.get())


@pytest.mark.parametrize("failure", [ServerError("not now", code=503), NotLeading("not any more")])
@pytest.mark.parametrize("has_job", [True, False])
async def test_commands_wait_for_the_next_pass_when_one_fails(failure: Exception, has_job: bool):
    server = Server(has_job=has_job)
    engine = engine_with(server)
    if has_job:
        engine.view.take_job(msgspec.json.decode(await server.get("")))
    server.failure = failure
    await take_turn(engine)
    assert [request.name for request in engine._commands.waiting(KEY)] == ["c1", "c2"]
    assert server.deleted == []


async def test_commands_wait_for_the_next_lead_when_a_pass_is_cancelled():
    server = Server(has_job=True)
    engine = engine_with(server)
    engine.view.take_job(msgspec.json.decode(await server.get("")))
    server.failure = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await take_turn(engine)
    assert [request.name for request in engine._commands.waiting(KEY)] == ["c1", "c2"]


async def test_commands_for_a_job_that_is_not_there_are_deleted():
    server, log = Server(has_job=False), EventLog()
    engine = engine_with(server, log=log)
    await take_turn(engine)
    assert server.deleted == log.dropped == ["c1", "c2"]
    assert not engine._commands.waiting(KEY)
    assert not engine.queue._not_before, "nothing is remembered of a Job that there is not"


async def test_commands_keep_their_order_when_one_comes_while_another_fails():
    server = Server(has_job=True)
    engine = engine_with(server)
    engine.view.take_job(msgspec.json.decode(await server.get("")))
    late = CommandRequest(namespace="ns", name="c3", uid="c3", action="ResumeJob", target="j", target_uid="")

    async def fail(path: str, **_: Any) -> bytes:
        engine.take_command(late)
        raise ServerError("not now", code=503)

    server.delete = fail  # type: ignore[method-assign]
    await take_turn(engine)
    assert [request.name for request in engine._commands.waiting(KEY)] == ["c1", "c2", "c3"]


async def test_a_command_under_way_is_carried_out_before_the_work_ends():
    server = Server(has_job=True)
    engine = engine_with(server)
    deleting, go_on = asyncio.Event(), asyncio.Event()

    async def delete(path: str, **_: Any) -> bytes:
        server.deleted.append(path.rpartition("/")[2])
        deleting.set()
        await go_on.wait()
        return b'{"kind":"Status","status":"Success"}'

    async def synced() -> None:
        engine.view.take_job(msgspec.json.decode(await server.get("")))

    looked = []

    async def look(key: Any, memory: Any) -> None:
        looked.append([command.name for command in memory.commands])
        memory.commands.clear()

    server.delete = delete  # type: ignore[method-assign]
    engine.view.synced = synced  # type: ignore[method-assign]
    engine._reconciler.look = look  # type: ignore[assignment,method-assign]
    work = asyncio.create_task(engine.work())
    await deleting.wait()
    work.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait((work,))
    assert looked == [["c1", "c2"]]


@pytest.mark.parametrize("name", ["", "j?x=1", "j/status", "..", "../../pods/p", "j ", "J", "日本", "j\n", "j" * 254])
async def test_a_command_for_what_can_be_no_job_is_deleted_without_a_question(name: str):
    server = Server(has_job=True)
    engine = engine_with(server)
    engine._commands._waiting.clear()
    await engine.queue.get()
    engine.take_command(
        CommandRequest(namespace="ns", name="c", uid="c", action="AbortJob", target=name, target_uid="")
    )
    await take_turn(engine)
    assert server.deleted == ["c"]
    assert not len(engine.view.jobs)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.queue.get(), 0.01)


async def test_a_command_that_somebody_deletes_is_not_carried_out():
    server = Server(has_job=True)
    engine = engine_with(server)
    first, second = engine._commands.waiting(KEY)
    engine.lose_command(first)
    assert engine._commands.waiting(KEY) == [second]
    engine.lose_command(second)
    assert not engine._commands.waiting(KEY)


async def test_a_command_whose_deletion_was_not_answered_is_carried_out_although_it_is_gone():
    server = Server(has_job=True)
    engine = engine_with(server)
    engine.view.take_job(msgspec.json.decode(await server.get("")))
    server.failure = ServerError("not now", code=503)
    await take_turn(engine)
    first, second = engine._commands.waiting(KEY)
    engine.lose_command(first)
    assert engine._commands.waiting(KEY) == [first, second]

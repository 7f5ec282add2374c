"""A replica that leads again after another one has led: what it knew before is no longer to be acted upon."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Key
from tests.unit.controller.world import World, run

from vcjob.admission.defaulting import default_job
from vcjob.controller.refusals import Refusal
from vcjob.gang.none import NoGang
from vcjob.kube.errors import ApiError, Forbidden, Unreachable
from vcjob.kube.lease import NotLeading

KEY = ("ns", "j")
RESTART, ABORT = 2, 0  # numbers of the move "command"


def world_with(*policies: dict[str, Any]) -> World:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    task = {"name": "w", "replicas": 2, "maxRetry": 3, "template": template}
    raw = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [task], "policies": list(policies), "maxRetry": 9},
    }
    return World(default_job(raw), gang=NoGang(gang_scheduler_name="volcano"))


async def become_running(world: World) -> None:
    await world.catch_up(0)
    world.start_all(0)
    await world.catch_up(0)
    assert world.phase == "Running"


async def restart_to_the_end(world: World) -> None:
    for _ in range(10):
        await world.catch_up(0)
        world.end_termination(0)
        world.cluster.now += 5
    await become_running(world)


def refuse(world: World, plural: str, verb: str, failure: BaseException) -> None:
    """Have one kind of request fail without an effect."""

    def decide(asked: str, key: Key) -> ApiError | None:
        if (key[0], asked) != (plural, verb):
            return None
        if isinstance(failure, ApiError):
            return failure
        raise failure

    world.operator.api.refuse = decide


def obey(world: World) -> None:
    world.operator.api.refuse = lambda verb, key: None


def test_a_command_whose_deletion_was_not_answered_is_not_carried_out_after_somebody_else_has():
    world = world_with()

    async def story(_: World) -> None:
        await become_running(world)
        refuse(world, "commands", "delete", Unreachable("cut off"))
        world.command(RESTART)
        with pytest.raises(Unreachable):
            await world.operator.engine._pass(KEY)
        obey(world)
        world.hand_over(0)
        await restart_to_the_end(world)
        assert world.job is not None
        version = world.job["status"]["version"]
        assert version == 1
        world.hand_over(1)
        await world.catch_up(0)
        assert (world.phase, world.job["status"]["version"]) == ("Running", version)

    run(world, story)


def test_a_command_that_was_taken_and_given_up_is_not_carried_out_later():
    world = world_with()

    async def story(_: World) -> None:
        await become_running(world)
        refuse(world, "jobs", "status", NotLeading("lost"))
        world.command(ABORT)
        with pytest.RaisesGroup(NotLeading, flatten_subgroups=True, allow_unwrapped=True):
            await world.operator.engine._pass(KEY)
        obey(world)
        assert world.cluster.get("commands", "c1") is None
        world.hand_over(0)
        await world.catch_up(0)
        world.hand_over(1)
        await world.catch_up(0)
        assert world.phase == "Running"

    run(world, story)


def test_the_time_of_a_cause_does_not_run_from_an_earlier_lead():
    world = world_with({"event": "TaskFailed", "action": "AbortJob", "timeout": "10m"})

    async def story(_: World) -> None:
        await become_running(world)
        world.restart_container(0)
        await world.catch_up(0)
        world.hand_over(0)
        world.delete_pod(0)
        world.end_termination(0)
        await become_running(world)
        world.cluster.now += 7200
        world.restart_container(0)
        world.hand_over(1)
        await world.catch_up(0)
        assert world.phase == "Running"
        world.cluster.now += 601
        await world.catch_up(0)
        assert world.phase != "Running"

    run(world, story)


def test_a_command_that_may_not_be_deleted_keeps_the_job_from_nothing_else():
    world = world_with({"event": "PodFailed", "action": "RestartJob"})

    async def story(_: World) -> None:
        await become_running(world)
        refuse(world, "commands", "delete", Forbidden("no right", code=403))
        world.command(ABORT)
        await world.catch_up(0)
        world.end_pod(0, 1)
        await world.catch_up(0)
        assert world.job is not None
        assert (world.phase, world.job["status"]["retryCount"]) == ("Restarting", 1)
        told = {event.message for event in world.operator.log.events if event.reason == "CommandWaits"}
        assert told == {"Forbidden: Command c1 waits to be deleted: no right"}
        obey(world)
        world.cluster.now += 5
        await world.catch_up(0)
        assert world.phase in ("Aborting", "Aborted")

    run(world, story)


def test_a_command_that_was_taken_is_not_kept_waiting():
    world = world_with()

    async def story(_: World) -> None:
        await become_running(world)
        engine = world.operator.engine
        refuse(world, "jobs", "status", Forbidden("no right", code=403))
        world.command(ABORT)
        with pytest.raises(Forbidden):
            await engine._pass(KEY)
        assert world.cluster.get("commands", "c1") is None
        delays = [engine._after_failure(KEY, Refusal(reason="Forbidden", message="")) for _ in range(12)]
        assert max(delays) <= 5

    run(world, story)

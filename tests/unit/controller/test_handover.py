"""A replica that leads again after another one has led: what it knew before is no longer to be acted upon."""

import pytest
from tests.unit.controller.cluster import JOBS, Key
from tests.unit.controller.stories import begin, refusing, told
from tests.unit.controller.world import ACTIONS, World
from tests.unit.lifecycle.builders import job as build

from vcjob.controller.refusals import Refusal
from vcjob.kube.errors import Forbidden, Unreachable
from vcjob.kube.lease import NotLeading

KEY = ("ns", "j")
RESTART, ABORT = ACTIONS.index("RestartJob"), ACTIONS.index("AbortJob")
FORBIDDEN = Forbidden("no right", code=403)
two = build().task("w", 2, maxRetry=3).spec(maxRetry=9)


async def run_again(world: World) -> None:
    """Let what is under way come to its end, and start all Pods."""
    await world.settle()
    world.start_all(0)
    await world.settle()
    assert world.phase == "Running"


def obey(world: World) -> None:
    world.operator.api.refuse = lambda verb, key: None


def lose_lead(verb: str, key: Key) -> None:
    if (verb, key[0]) == ("status", JOBS):
        raise NotLeading("lost")


def test_a_command_whose_deletion_was_not_answered_is_not_carried_out_after_somebody_else_has():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("delete", "commands", Unreachable("cut off"))
        world.command(RESTART)
        with pytest.raises(Unreachable):
            await world.operator.engine._pass(KEY)
        obey(world)
        world.hand_over(0)
        await run_again(world)
        assert world.job is not None
        version = world.job["status"]["version"]
        assert version == 1
        world.hand_over(1)
        await world.catch_up(0)
        assert (world.phase, world.job["status"]["version"]) == ("Running", version)

    begin(two, story)


def test_a_command_that_was_taken_and_given_up_is_not_carried_out_later():
    async def story(world: World) -> None:
        world.operator.api.refuse = lose_lead
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

    begin(two, story)


def test_the_time_of_a_cause_does_not_run_from_an_earlier_lead():
    async def story(world: World) -> None:
        world.restart_container(0)
        await world.catch_up(0)
        world.hand_over(0)
        world.delete_pod(0)
        world.end_termination(0)
        await world.catch_up(0)
        world.start_all(0)
        await world.catch_up(0)
        assert world.phase == "Running"
        world.cluster.now += 7200
        world.restart_container(0)
        world.hand_over(1)
        await world.catch_up(0)
        assert world.phase == "Running"
        world.cluster.now += 601
        await world.catch_up(0)
        assert world.phase != "Running"

    begin(two.policy("TaskFailed", "AbortJob", timeout="10m"), story)


def test_a_command_that_may_not_be_deleted_keeps_the_job_from_nothing_else():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("delete", "commands", FORBIDDEN)
        world.command(ABORT)
        await world.catch_up(0)
        world.end_pod(0, 1)
        await world.catch_up(0)
        assert world.job is not None
        assert (world.phase, world.job["status"]["retryCount"]) == ("Restarting", 1)
        assert set(told(world, "CommandWaits")) == {"Forbidden: Command c1 waits to be deleted: no right"}
        obey(world)
        world.cluster.now += 5
        await world.catch_up(0)
        assert world.phase in ("Aborting", "Aborted")

    begin(two.policy("PodFailed", "RestartJob"), story)


def test_a_command_that_was_taken_is_not_kept_waiting():
    async def story(world: World) -> None:
        engine = world.operator.engine
        world.operator.api.refuse = refusing("status", JOBS, FORBIDDEN)
        world.command(ABORT)
        with pytest.raises(Forbidden):
            await engine._pass(KEY)
        assert world.cluster.get("commands", "c1") is None
        delays = [engine._after_failure(KEY, Refusal(reason="Forbidden", message="")) for _ in range(12)]
        assert max(delays) <= 5

    begin(two, story)

"""Stories of one Job that a test tells step by step: how they begin, and what is refused in them."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.unit.controller.cluster import Key
from tests.unit.controller.world import World, run
from tests.unit.lifecycle.builders import SnapshotBuilder

from vcjob.admission.defaulting import default_job
from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang
from vcjob.kube.errors import ApiError

__all__ = ("Story", "begin", "refusing", "told", "world_with")

Story = Callable[[World], Coroutine[Any, Any, None]]


def world_with(builder: SnapshotBuilder, *, volcano: bool = False) -> World:
    """Put the builder's Job into a world where nobody has looked at it yet."""
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **builder.raw, "metadata": {"name": "j"}}
    return World(default_job(raw), gang=VolcanoGang() if volcano else NoGang(gang_scheduler_name="volcano"))


def begin(builder: SnapshotBuilder, story: Story, *, volcano: bool = False) -> World:
    """Put the builder's Job into a world, let it run, and play a story there."""
    world = world_with(builder, volcano=volcano)

    async def whole(world: World) -> None:
        await world.catch_up(0)
        world.start_all(0)
        await world.settle()
        world.start_all(0)
        await world.settle()
        world.operator.log.events.clear()
        await story(world)

    run(world, whole)
    return world


def told(world: World, reason: str) -> list[str]:
    return [note.message for note in world.operator.log.events if note.reason == reason]


def refusing(verb: str, plural: str, error: ApiError) -> Callable[[str, Key], ApiError | None]:
    return lambda asked, key: error if (asked, key[0]) == (verb, plural) else None

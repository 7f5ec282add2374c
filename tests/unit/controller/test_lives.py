"""Whole lives of Jobs: the real controller on a cluster in memory, whatever happens, wherever the process dies.

Left out: timing of the work queue and of the watches, which have their own tests.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.controller.lives import jobs, moves
from tests.unit.controller.world import World, run

from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang

gangs = st.sampled_from([VolcanoGang(), NoGang(gang_scheduler_name="volcano")])
relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@relaxed
@given(job=jobs(), gang=gangs, life=moves(least=20, most=60))
def test_every_life_keeps_the_laws_and_comes_to_rest(job, gang, life):
    """The laws are in `Laws`; at rest nothing is left to do and the status says what is."""

    async def story(world: World) -> None:
        await world.play(life)
        await world.settle()

    run(World(job, gang=gang), story)

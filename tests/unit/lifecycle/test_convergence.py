"""A plan that leaves something undone says when to look again."""

import pytest
from tests.unit.lifecycle.builders import NOW, failed, job, running, succeeded

from vcjob.api.job import Phase


def test_a_job_whose_pods_all_finished_before_the_first_look_completes_without_another_event():
    made = job().task("w", 2).pending().pod(succeeded("w", 0), succeeded("w", 1)).plan()
    assert (made.status.phase, made.wake) == (Phase.RUNNING, NOW)


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(job().task("w", 1).pending().pod(running("w", 0)), id="Pending to Running"),
        pytest.param(
            job().task("w", 2).running().pod(running("w", 0), succeeded("w", 1)).scale("w", 0), id="scaled to 0"
        ),
        pytest.param(job().task("w", 1).running().pod(failed("w", 0)), id="Running to Failed"),
        pytest.param(job().task("w", 1).phase("Aborting"), id="Aborting to Aborted"),
        pytest.param(job().task("w", 1).restarting(version=1, retry_count=1), id="Restarting to Pending"),
    ],
)
def test_a_new_phase_is_looked_at_again_at_once(snapshot):
    made = snapshot.plan()
    assert made.status.phase is snapshot.make().phase or made.wake == NOW


def test_the_ttl_counts_on_after_the_objects_of_the_job_are_gone():
    ended = job().task("w", 1).spec(ttlSecondsAfterFinished=60).phase("Completed").marked("svc").plugin("svc")
    made = ended.plan()
    assert (len(made.stages), made.wake) == (1, NOW)

"""How a running Job ends by itself."""

import pytest
from tests.unit.lifecycle.builders import BEFORE, NOW, deleted, failed, job, pending, running, succeeded, terminating

from vcjob.api.job import Phase
from vcjob.lifecycle.outcome import Write

four = job().task("w", 2).task("v", 2)
w_done, v_done = (succeeded("w", 0), succeeded("w", 1)), (succeeded("v", 0), succeeded("v", 1))
v_failed = (failed("v", 0), failed("v", 1))


@pytest.mark.parametrize(
    ("snapshot", "pods", "phase"),
    [
        pytest.param(four, (*w_done, *v_done), "Completed", id="all succeeded"),
        pytest.param(four, (*w_done, *v_failed), "Failed", id="one task failed"),
        pytest.param(four, (*w_done, running("v", 0), failed("v", 1)), "Running", id="one still runs"),
        pytest.param(four.spec(minAvailable=2), (*w_done, *v_failed), "Completed", id="minAvailable have succeeded"),
        pytest.param(four.spec(minAvailable=3), (*w_done, *v_failed), "Failed", id="fewer than minAvailable"),
        pytest.param(
            four.spec(minSuccess=2), (*w_done, running("v", 0), pending("v", 1)), "Completed", id="minSuccess"
        ),
        pytest.param(
            four.spec(minSuccess=3, minAvailable=1), (*w_done, *v_failed), "Failed", id="minSuccess is missed"
        ),
        pytest.param(four.spec(minSuccess=3), (*w_done, running("v", 0), failed("v", 1)), "Running", id="not yet"),
        pytest.param(four, (*w_done, succeeded("v", 0), terminating("v", 1)), "Running", id="one terminates"),
        pytest.param(job().task("w", 2).scale("w", 0), (), "Running", id="scaled to zero"),
    ],
)
def test_the_end_follows_from_the_pods(snapshot, pods, phase):
    made = snapshot.running().pod(*pods).plan()
    assert made.status.phase == phase
    assert made.status.reason and made.status.message


def test_a_tasks_own_minimum_counts_when_the_jobs_covers_them_all():
    least = job().task("w", 3, minAvailable=1).task("v", 1, minAvailable=1).running()
    pods = (succeeded("w", 0), failed("w", 1), failed("w", 2))
    assert least.pod(*pods, succeeded("v", 0)).plan().status.phase is Phase.COMPLETED
    assert least.pod(*pods, failed("v", 0)).plan().status.phase is Phase.FAILED
    assert least.spec(minAvailable=1).pod(*pods, failed("v", 0)).plan().status.phase is Phase.COMPLETED


def test_an_early_success_writes_the_end_before_it_kills_the_rest():
    made = four.spec(minSuccess=2).running().pod(*w_done, running("v", 0), pending("v", 1)).plan()
    assert (made.write, deleted(made)) == (Write.FIRST, ["v-0", "v-1"])
    assert (made.status.succeeded, made.status.terminating) == (2, 2)


def test_the_end_says_how_long_it_took():
    made = four.running().pod(*w_done, *v_done).plan()
    assert made.status.running_duration == "1m40s"
    assert made.status.last_transition == NOW != BEFORE


@pytest.mark.parametrize(("phase", "kind"), [("Completed", "Normal"), ("Failed", "Warning")])
def test_the_end_is_an_event(phase, kind):
    pods = (*w_done, *(v_done if phase == "Completed" else v_failed))
    (note,) = four.running().pod(*pods).plan().events
    assert (note.type, note.reason) == (kind, f"Job{phase}")


# Time to live


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_is_deleted_when_its_time_has_passed(phase):
    ended = job().task("w", 1).spec(ttlSecondsAfterFinished=150).phase(phase, last_transition=BEFORE)
    assert (ended.plan().stages, ended.plan().wake) == ((), BEFORE + 150)
    assert [type(step).__name__ for step in ended.at(50).plan().stages[0]] == ["DeleteJob"]


def test_an_aborted_job_stays_unless_its_annotation_says_otherwise():
    aborted = job().task("w", 1).spec(ttlSecondsAfterFinished=10).phase("Aborted")
    assert aborted.plan().stages == ()
    asked = aborted.annotated(vcjob__ttl_includes_aborted="true")
    assert [type(step).__name__ for step in asked.plan().stages[0]] == ["DeleteJob"]


def test_a_job_without_a_ttl_stays():
    assert job().task("w", 1).phase("Completed").at(1e9).plan().stages == ()

"""From Restarting to Pending: what is killed, what is awaited, and what a user reads meanwhile."""

import pytest
from tests.unit.lifecycle.builders import (
    BEFORE,
    NOW,
    created,
    deleted,
    failed,
    job,
    running,
    steps,
    succeeded,
    terminating,
)

from vcjob.api.job import Phase
from vcjob.lifecycle.restart import BACKOFF_CAP, Restart, restart_delay
from vcjob.lifecycle.status import format_time
from vcjob.lifecycle.steps import DeleteGroup

old = {"job_version": 0}
begun = job().task("w", 2).restarting("job", version=1, retry_count=1, message="pod j-w-0 failed; RestartJob")


def test_what_a_crash_left_of_the_kill_is_done():
    assert deleted(begun.pod(failed("w", 0), running("w", 1)).plan()) == ["w-0", "w-1"]


def test_a_restart_of_single_pods_marks_also_those_that_go_already():
    targeted = job().task("w", 2).restarting("w:0-1", retry_count=1)
    assert deleted(targeted.pod(running("w", 0), terminating("w", 1)).plan()) == ["w-0*", "w-1*"]
    assert deleted(targeted.pod(running("w", 0, retry=1), terminating("w", 1, ours=True)).plan()) == []


def test_the_old_group_goes_before_pods_are_made():
    made = begun.volcano("Running", job_version=None).plan()
    assert [type(step) for step in steps(made)] == [DeleteGroup]
    waiting = begun.volcano("Running", job_version=None, deleted=True).plan()
    assert waiting.status.message.endswith("| PodGroup j-uid-1 is not gone yet")


def test_the_group_of_a_running_job_that_another_controller_restarted_is_the_present_one():
    taken_over = job().task("w", 1).phase("Running", version=4).volcano("Running", job_version=None)
    assert taken_over.pod(running("w", 0, job_version=4)).plan().stages == ()


@pytest.mark.parametrize(
    ("minimum", "phase"),
    [pytest.param(2, Phase.RESTARTING, id="too few can start"), pytest.param(1, Phase.PENDING, id="enough can start")],
)
def test_pods_that_still_terminate_are_awaited_while_they_block_the_minimum(minimum, phase):
    made = begun.spec(minAvailable=minimum).pod(terminating("w", 1)).plan()
    assert made.status.phase is phase
    if phase is Phase.RESTARTING:
        assert made.status.message == "pod j-w-0 failed; RestartJob | 1 Pod is still terminating"


def test_the_first_restart_is_immediate():
    made = begun.plan()
    assert (made.status.phase, made.status.reason, made.wake) == (Phase.PENDING, "Restarted", NOW)
    assert made.status.message == "pod j-w-0 failed; RestartJob"
    assert "restart" not in made.status.controlled


def test_later_restarts_are_spaced_and_say_until_when():
    later = begun.phase("Restarting", version=3, retry_count=3, last_transition=NOW - 1).spec(maxRetry=9)
    made = later.plan()
    assert (made.status.phase, made.wake) == (Phase.RESTARTING, NOW + 3)
    assert made.status.message.endswith(f"| Pods are made again at {format_time(NOW + 3)}")
    assert later.at(3).plan().status.phase is Phase.PENDING


def test_a_clock_that_has_been_set_back_does_not_hold_a_restart():
    made = begun.restarting("job", version=1, retry_count=3, last_transition=NOW + 3600).spec(maxRetry=9).plan()
    assert (made.status.phase, made.status.reason) == (Phase.PENDING, "Restarted")


@pytest.mark.parametrize(
    ("count", "delay"), [(0, 0), (1, 0), (2, 2), (3, 4), (9, 256), (10, BACKOFF_CAP), (999, BACKOFF_CAP)]
)
def test_the_delay_doubles_up_to_its_cap(count, delay):
    assert restart_delay(count) == delay


def test_resuming_needs_no_patience_and_costs_nothing():
    resumed = job().task("w", 2).phase("Aborted", retry_count=2, version=3).command("ResumeJob")
    made = resumed.plan()
    assert (made.status.retry_count, made.status.controlled["restart"]) == (2, "alive")
    pending = resumed.after(made).given(command=None).plan()
    assert pending.status.phase is Phase.PENDING


def test_a_resumed_job_keeps_its_finished_pods_and_makes_the_others():
    snapshot = job().task("w", 3).phase("Aborted", version=1).command("ResumeJob")
    snapshot = snapshot.pod(succeeded("w", 0), failed("w", 1)).policy("PodFailed", "RestartJob")
    restarting = snapshot.after(snapshot.plan()).given(command=None)
    pending = restarting.after(restarting.plan())
    assert created(pending.plan()) == ["w-2"]
    assert pending.plan().status.retry_count == 0


def test_a_command_restarts_the_finished_pods_of_a_job_that_is_being_resumed_too():
    resuming = job().task("w", 2).restarting("alive", version=2).pod(failed("w", 0), running("w", 1))
    made = resuming.command("RestartJob").plan()
    assert (made.status.controlled["restart"], deleted(made)) == ("job", ["w-0", "w-1"])


def test_the_last_try_is_not_restarted():
    last = job().task("w", 2).restarting("alive", version=3, retry_count=3)
    made = last.pod(failed("w", 0, job_version=2), running("w", 1, job_version=2)).command("RestartJob").plan()
    assert [note.message for note in made.events] == ["Command c asks for RestartJob, but all retries are used up"]


def test_when_the_retries_are_used_up_the_job_fails():
    last = job().task("w", 2).restarting("alive", version=3, retry_count=3, message="pod j-w-0 failed")
    made = last.volcano("Running", job_version=None).pod(failed("w", 0, job_version=2)).plan()
    assert (made.status.phase, made.status.reason) == (Phase.FAILED, "MaxRetryReached")
    assert made.status.message == "pod j-w-0 failed; 3 of 3 retries are used up"
    assert (made.status.failed, deleted(made)) == (1, [])
    assert [type(step) for step in steps(made)] == [DeleteGroup]


def test_a_restart_without_a_record_ends():
    """As another controller may have left it."""
    assert job().task("w", 1).phase("Restarting", retry_count=1).plan().status.phase is Phase.PENDING


@pytest.mark.parametrize(
    "restart",
    [
        Restart(whole=True),
        Restart(alive_only=True),
        Restart(targets={"w": frozenset({0, 1, 2, 5, 7, 8}), "ps": frozenset({0})}),
    ],
)
def test_a_record_is_read_as_it_was_written(restart):
    assert Restart.read(restart.write()) == restart


def test_a_record_is_short():
    assert Restart(targets={"w": frozenset(range(1000)), "ps": frozenset({3})}).write() == "ps:3;w:0-999"


def test_a_record_that_nobody_understands_restarts_all():
    assert Restart.read("w:x") == Restart(whole=True)


def test_a_restart_of_single_pods_takes_finished_ones_that_an_abort_had_kept():
    restart = Restart(targets={"w": frozenset({0})})
    assert restart.covers(failed("w", 0, job_version=0), version=2, retry_count=1)
    assert not restart.covers(failed("w", 1, job_version=0), version=2, retry_count=1)
    assert restart.covers(running("w", 1, job_version=0, created=BEFORE), version=2, retry_count=1)


def test_what_ended_the_job_is_kept_whole_whatever_characters_it_has():
    said = 'Pod "j-w-0" is invalid: Invalid value: "a | b": must be y'
    begun = job().task("w", 1).memory(rejected=said)
    made = begun.plan()
    ended = begun.after(made).plan()
    assert made.status.message == ended.status.message == said.replace(" | ", " / ")

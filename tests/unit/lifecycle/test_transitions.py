"""Every cell of the phase table, carried out: where an action leads, whom it kills, what it costs, what it says."""

from itertools import product

import pytest
from tests.unit.lifecycle.builders import (
    NOW,
    SnapshotBuilder,
    deleted,
    failed,
    job,
    pending,
    running,
    steps,
    succeeded,
    terminating,
    unknown,
)

from vcjob.api.job import Action, Phase
from vcjob.lifecycle.outcome import Write
from vcjob.lifecycle.steps import DeleteGroup
from vcjob.lifecycle.transitions import TRANSITIONS, Scope, find_rule

RESTARTS = (Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
LIVING = (Phase.PENDING, Phase.RUNNING, Phase.RESTARTING)
ENDINGS = {
    Action.ABORT_JOB: Phase.ABORTING,
    Action.TERMINATE_JOB: Phase.TERMINATING,
    Action.COMPLETE_JOB: Phase.COMPLETING,
}


def expected(phase: Phase, action: Action) -> tuple[Phase, int] | None:
    """Return where the action leads and what it costs, as the documentation has it; None: nothing happens."""
    if phase in LIVING and action in RESTARTS:
        return Phase.RESTARTING, 0 if phase is Phase.RESTARTING else 1
    if phase in LIVING and action in ENDINGS:
        return ENDINGS[action], 0
    if phase in (Phase.ABORTING, Phase.ABORTED):
        return {
            Action.RESUME_JOB: (Phase.RESTARTING, 0),
            Action.TERMINATE_JOB: (Phase.TERMINATING, 0),
        }.get(action)
    return None


def in_phase(phase: Phase) -> SnapshotBuilder:
    """Return a Job in that phase with a Pod of each kind."""
    partitions = {"totalPartitions": 3, "partitionSize": 2}
    begun = job().task("w", 6, partitionPolicy=partitions).volcano("Running")
    begun = begun.restarting("w:0", retry_count=1) if phase is Phase.RESTARTING else begun.phase(phase)
    return begun.pod(
        running("w", 0, ours=phase is Phase.RESTARTING, deleted=NOW if phase is Phase.RESTARTING else None),
        pending("w", 1),
        unknown("w", 2),
        succeeded("w", 3),
        failed("w", 4),
        terminating("w", 5, ours=True),
    )


@pytest.mark.parametrize(("phase", "action"), [*product(Phase, Action)])
def test_the_table_says_what_the_documentation_says(phase, action):
    rule = find_rule(phase, action)
    assert (None if rule is None else (rule.to, rule.retries)) == expected(phase, action)


def test_no_cell_is_there_twice():
    assert len({(rule.phase, rule.on) for rule in TRANSITIONS}) == len(TRANSITIONS)


@pytest.mark.parametrize(("phase", "action"), [*product(Phase, Action)])
def test_a_command_does_what_the_table_says_and_says_why(phase, action):
    snapshot = in_phase(phase).command(action, reason="maintenance")
    before, made = snapshot.make().status, snapshot.plan()
    rule = find_rule(phase, action)
    if rule is None or rule.scope is Scope.TARGET:
        assert made.write is not Write.FIRST or made.status.phase is phase
        assert [note.reason for note in made.events if "Command c" in note.message] == ["ActionIgnored"]
        assert made.status.retry_count == before.retry_count
        return
    assert (made.write, made.status.phase) == (Write.FIRST, rule.to)
    assert (made.status.retry_count, made.status.version) == (before.retry_count + rule.retries, before.version + 1)
    assert made.status.reason == "CommandIssued"
    assert made.status.message.startswith(f"Command c: maintenance; {action}")
    assert [note.reason for note in made.events] == ["CommandIssued", "ExecuteAction"]


@pytest.mark.parametrize("action", [Action.ABORT_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB])
@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RUNNING])
def test_an_ending_action_kills_what_lives_and_keeps_what_is_finished(phase, action):
    made = in_phase(phase).policy("PodFailed", action).plan()
    assert deleted(made) == ["w-0", "w-1", "w-2"]
    assert any(isinstance(step, DeleteGroup) for step in steps(made))
    assert (made.status.terminating, made.status.succeeded, made.status.failed) == (4, 1, 1)
    assert (made.status.pending, made.status.running, made.status.unknown) == (0, 0, 0)


def test_a_restart_of_the_job_kills_all():
    made = in_phase(Phase.RUNNING).policy("PodFailed", "RestartJob").plan()
    assert deleted(made) == ["w-0", "w-1", "w-2", "w-3", "w-4"]
    assert (made.status.terminating, made.status.controlled["restart"]) == (6, "job")


@pytest.mark.parametrize("action", RESTARTS)
def test_on_the_last_try_the_finished_pods_stay_for_inspection(action):
    last = in_phase(Phase.RUNNING).policy("PodFailed", action).phase("Running", retry_count=2)
    made = last.plan()
    assert deleted(made) == ["w-0", "w-1", "w-2"]
    assert (made.status.retry_count, made.status.phase) == (3, Phase.RESTARTING)
    assert made.status.message.endswith("retry 3 of 3")
    ended = last.after(made).no_pods().pod(succeeded("w", 3), failed("w", 4)).plan()
    assert (ended.status.phase, ended.status.reason, deleted(ended)) == (Phase.FAILED, "MaxRetryReached", [])
    assert (ended.status.succeeded, ended.status.failed, ended.status.retry_count) == (1, 1, 3)


@pytest.mark.parametrize("finished", [Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED])
def test_a_finished_job_never_starts_again(finished):
    snapshot = job().task("w", 2).policy("*", "RestartJob").phase(finished).pod(failed("w", 0))
    made = snapshot.plan()
    assert (made.status.phase, made.stages) == (finished, ())
    assert made.status.last_transition == snapshot.make().status.last_transition


@pytest.mark.parametrize(
    ("phase", "final"),
    [("Aborting", "Aborted"), ("Terminating", "Terminated"), ("Completing", "Completed")],
)
def test_an_ending_phase_ends_when_nothing_lives(phase, final):
    ending = job().task("w", 2).phase(phase, reason="PodFailed", message="pod j-w-0 failed; Xyz")
    waiting = ending.pod(terminating("w", 0), failed("w", 1)).plan()
    assert (waiting.status.phase, waiting.status.terminating) == (phase, 1)
    assert waiting.status.message == "pod j-w-0 failed; Xyz | 1 Pod is still terminating"
    ended = ending.after(waiting).pod(failed("w", 1)).plan()
    assert (ended.status.phase, ended.status.message) == (final, "pod j-w-0 failed; Xyz")
    assert (ended.status.failed, ended.status.reason) == (1, "PodFailed")


def test_a_pod_whose_node_is_lost_is_killed_and_awaited():
    made = job().task("w", 1).phase("Terminating").pod(unknown("w", 0)).plan()
    assert (deleted(made), made.status.terminating) == (["w-0"], 1)


def test_a_deleted_job_is_left_to_the_garbage_collector():
    made = in_phase(Phase.RUNNING).policy("PodFailed", "RestartJob").given(deleting=True).plan()
    assert (made.status, made.stages, made.wake) == (None, (), None)

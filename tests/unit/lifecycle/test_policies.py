"""Which policy answers to an event, and what it decides."""

import pytest
from tests.unit.lifecycle.builders import (
    BEFORE,
    NOW,
    deleted,
    exits,
    failed,
    job,
    pending,
    running,
    steps,
    succeeded,
    terminating,
)

from vcjob.api.job import Phase
from vcjob.lifecycle.outcome import Plan, Write
from vcjob.lifecycle.steps import DeletePods


def action(made: Plan) -> str:
    """Return the action that a plan carries out, by the Event that tells of it; empty when there is none."""
    told = [note.message for note in made.events if note.message.startswith("Start to execute action ")]
    return told[0].removeprefix("Start to execute action ").split(" : ")[0] if told else ""


two = job().task("w", 2).task("v", 1).running()
one_failed = [failed("w", 0), running("w", 1), running("v", 0)]


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(two, "", id="no policy"),
        pytest.param(two.policy("PodFailed", "AbortJob"), "AbortJob", id="the Job's policy"),
        pytest.param(
            two.policy("PodFailed", "AbortJob").policy("PodFailed", "RestartJob", task="w"),
            "RestartJob",
            id="task first",
        ),
        pytest.param(
            two.policy("PodFailed", "AbortJob").policy("PodFailed", "RestartJob", task="v"), "AbortJob", id="other task"
        ),
        pytest.param(
            two.policy("PodFailed", "AbortJob").policy("PodEvicted", "RestartJob", task="w"),
            "AbortJob",
            id="the task's own does not match",
        ),
        pytest.param(
            two.policy("PodFailed", "AbortJob").policy("PodFailed", "RestartJob"), "AbortJob", id="the first of a list"
        ),
        pytest.param(two.policy("*", "TerminateJob"), "TerminateJob", id="any event"),
        pytest.param(two.policy("PodEvicted", "AbortJob"), "", id="another event"),
        pytest.param(two.policy("", "AbortJob", events=["PodEvicted", "PodFailed"]), "AbortJob", id="one of several"),
        pytest.param(two.policy("", "CompleteJob", exitCode=1), "CompleteJob", id="the exit code"),
        pytest.param(two.policy("", "CompleteJob", exitCode=2), "", id="another exit code"),
        pytest.param(
            two.policy("", "AbortJob", exitCode=2).policy("PodFailed", "RestartJob"),
            "RestartJob",
            id="code, then event",
        ),
        pytest.param(two.policy("JobUpdated", "AbortJob"), "", id="an event that never comes"),
        pytest.param(two.policy("PodFailed", "ResumeJob"), "", id="an action that means nothing now"),
        pytest.param(two.policy("PodPending", "AbortJob"), "", id="PodPending without a timeout"),
    ],
)
def test_the_first_policy_that_matches_decides(snapshot, expected):
    assert action(snapshot.pod(*one_failed).plan()) == expected


@pytest.mark.parametrize(
    ("ended", "code", "matches"),
    [
        pytest.param(exits(a=0, b=3), 3, True, id="not the first container"),
        pytest.param(exits(a=2, b=3), 3, True, id="several codes"),
        pytest.param(exits(a=0, init=3), 3, True, id="an init container"),
        pytest.param(exits(a=0), 3, False, id="no such code"),
        pytest.param((), 3, False, id="nothing ended, as after an eviction by the kubelet"),
    ],
)
def test_an_exit_code_counts_from_any_ended_container(ended, code, matches):
    snapshot = two.policy("", "AbortJob", exitCode=code).pod(failed("w", 0, exits=ended))
    assert (action(snapshot.plan()) == "AbortJob") is matches


def test_exit_code_zero_never_matches():
    snapshot = two.policy("", "AbortJob", exitCode=0).pod(failed("w", 0, exits=exits(a=0, b=1)))
    assert action(snapshot.plan()) == ""


def test_the_message_names_the_container_that_the_policy_is_about():
    made = two.policy("", "AbortJob", exitCode=3).pod(failed("w", 0, exits=exits(a=2, b=3))).plan()
    assert made.status.message == "pod j-w-0 failed: container b ended with exit code 3; AbortJob"
    assert made.status.reason == "PodFailed"


@pytest.mark.parametrize(
    ("policy", "killed"),
    [
        pytest.param("RestartPod", ["w-0*"], id="the Pod"),
        pytest.param("RestartTask", ["w-0*", "w-1*", "w-2*", "w-3*"], id="the task"),
        pytest.param("RestartPartition", ["w-0*", "w-1*"], id="the partition"),
        pytest.param("RestartJob", ["w-0", "w-1", "w-2", "w-3", "v-0"], id="the Job"),
    ],
)
def test_a_restart_is_about_the_pods_that_its_action_names(policy, killed):
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    snapshot = job().task("w", 4, partitionPolicy=partitions).task("v", 1).policy("PodFailed", policy).running()
    made = snapshot.pod(failed("w", 0), *(running("w", i) for i in (1, 2, 3)), running("v", 0)).plan()
    assert deleted(made) == killed
    assert made.write is Write.FIRST
    assert (made.status.phase, made.status.retry_count, made.status.terminating) == (Phase.RESTARTING, 1, len(killed))


def test_a_restart_of_one_pod_leaves_the_group_and_the_version_alone():
    made = two.policy("PodFailed", "RestartPod").volcano("Running").pod(*one_failed).plan()
    assert [type(step) for step in steps(made)] == [DeletePods]
    assert (made.status.version, made.status.controlled["restart"]) == (0, "w:0")


def test_several_failures_at_once_are_one_restart():
    snapshot = two.policy("PodFailed", "RestartPod").pod(failed("w", 0), failed("w", 1), running("v", 0))
    made = snapshot.plan()
    assert (deleted(made), made.status.retry_count) == (["w-0*", "w-1*"], 1)
    assert made.status.message == (
        "pod j-w-0 failed: container main ended with exit code 1 (and 1 more); RestartPod w:0-1; retry 1 of 3"
    )


def test_a_failure_during_a_restart_of_other_pods_widens_it_and_costs_nothing():
    restarting = job().task("w", 3).policy("PodFailed", "RestartPod").restarting("w:0", retry_count=1)
    made = restarting.pod(terminating("w", 0, ours=True), failed("w", 1), running("w", 2)).plan()
    assert (made.status.controlled["restart"], made.status.retry_count) == ("w:0-1", 1)
    assert made.status.message.endswith("; RestartPod w:0-1; retry 1 of 3")


def test_a_restart_of_the_job_during_a_restart_of_a_pod_widens_it_even_on_the_last_but_one_try():
    restarting = job().task("w", 2).policy("PodFailed", "RestartJob", task="w").restarting("w:0", retry_count=2)
    made = restarting.pod(terminating("w", 0, ours=True), failed("w", 1)).plan()
    assert (made.status.controlled["restart"], made.status.retry_count, made.status.version) == ("job", 2, 1)


def test_a_restart_that_changes_nothing_does_not_hide_an_abort():
    policies = job().task("w", 2).policy("PodFailed", "RestartPod", task="w").policy("TaskFailed", "AbortJob")
    both = policies.task("v", 1).restarting("w:0-1", retry_count=1)
    made = both.pod(running("v", 0, restarts=5), terminating("w", 0), failed("w", 1, since=BEFORE - 9)).plan()
    assert action(made) == "AbortJob"


def test_a_targeted_action_of_an_event_without_a_pod_is_told_and_ignored():
    made = two.policy("Unknown", "RestartTask").volcano("Unknown").pod(running("w", 0), running("w", 1)).plan()
    assert made.write is not Write.FIRST
    assert [note.reason for note in made.events if "RestartTask" in note.message] == ["ActionIgnored"]


def test_a_partition_action_of_a_task_without_partitions_is_told_and_ignored():
    made = two.policy("PodFailed", "RestartPartition").pod(*one_failed).plan()
    assert [note.reason for note in made.events] == ["ActionIgnored"]


# Delayed actions


delayed = job().task("w", 2).spec(minAvailable=1).running()


@pytest.mark.parametrize(
    ("snapshot", "due"),
    [
        pytest.param(
            delayed.policy("PodFailed", "AbortJob", timeout="2m").pod(failed("w", 0, since=NOW - 30), running("w", 1)),
            NOW + 90,
            id="from the end of the container",
        ),
        pytest.param(
            delayed.policy("PodPending", "AbortJob", timeout="3m").pod(
                pending("w", 0, created=NOW - 60), running("w", 1)
            ),
            NOW + 120,
            id="from the Pod's creation",
        ),
        pytest.param(
            delayed.policy("PodEvicted", "AbortJob", timeout="1m").pod(
                terminating("w", 0, deleted=NOW - 5), running("w", 1)
            ),
            NOW + 55,
            id="from the deletion",
        ),
        pytest.param(
            delayed.policy("PodEvicted", "AbortJob", timeout="5m").pod(
                pending("w", 0, evicted_at=NOW - 200), running("w", 1)
            ),
            NOW + 100,
            id="from the eviction of the Pod that is replaced",
        ),
        pytest.param(
            delayed.policy("Unknown", "AbortJob", timeout="1m")
            .volcano("Unknown", since=NOW - 10)
            .pod(running("w", 0), running("w", 1)),
            NOW + 50,
            id="from the group's condition",
        ),
        pytest.param(
            delayed.policy("TaskFailed", "AbortJob", timeout="1m")
            .memory(first_seen={"TaskFailed/w": NOW - 10})
            .pod(running("w", 0, restarts=5), running("w", 1)),
            NOW + 50,
            id="from the first look, when no object tells",
        ),
    ],
)
def test_a_delayed_action_is_due_by_the_clock_of_its_cause(snapshot, due):
    assert (action(snapshot.plan()), snapshot.plan().wake) == ("", due)
    assert action(snapshot.at(due - NOW - 1).plan()) == ""
    assert action(snapshot.at(due - NOW).plan()) == "AbortJob"


@pytest.mark.parametrize(
    "cured",
    [
        pytest.param(running("w", 0, evicted_at=NOW - 999), id="the replacement runs"),
        pytest.param(succeeded("w", 0), id="it has succeeded"),
    ],
)
def test_a_delayed_action_is_dropped_with_its_cause(cured):
    snapshot = delayed.policy("*", "AbortJob", timeout="1m").pod(cured, running("w", 1))
    assert (action(snapshot.plan()), snapshot.plan().wake) == ("", None)


def test_an_evicted_pods_replacement_carries_the_time_of_the_eviction():
    snapshot = delayed.policy("PodEvicted", "AbortJob", timeout="5m").removed(terminating("w", 1, deleted=NOW - 40))
    (creation,) = steps(snapshot.pod(running("w", 0)).plan())
    assert creation.members[0].evicted_at == NOW - 40


def test_the_time_of_a_failed_task_runs_on_when_another_pod_is_the_worst():
    snapshot = delayed.policy("TaskFailed", "AbortJob", timeout="1m")
    first = snapshot.pod(running("w", 0, restarts=5), running("w", 1, restarts=4)).plan()
    later = snapshot.memory(first_seen=first.seen).at(59).pod(running("w", 0, restarts=5), running("w", 1, restarts=6))
    assert (action(later.plan()), later.plan().wake) == ("", NOW + 60)
    assert action(later.memory(first_seen=later.plan().seen).at(60).plan()) == "AbortJob"


def test_tasks_of_which_many_pods_failed_are_restarted_together():
    snapshot = job().task("a", 3).task("b", 2).task("c", 1).policy("PodFailed", "RestartTask").running()
    made = snapshot.pod(*(failed("a", i) for i in range(3)), running("b", 0), failed("b", 1), running("c", 0)).plan()
    assert made.status.controlled["restart"] == "a:0-2;b:0-1"
    assert "(and 3 more)" in made.status.message
    going_on = snapshot.restarting("a:0-2").pod(failed("b", 1), running("b", 0), running("c", 0)).plan()
    assert going_on.status.controlled["restart"] == "a:0-2;b:0-1"


def test_many_delayed_actions_are_one_event():
    snapshot = job().task("w", 9).policy("PodPending", "AbortJob", timeout="3m").pending()
    made = snapshot.pod(*(pending("w", i) for i in range(9))).plan()
    assert [note.message for note in made.events] == ["Execute action AbortJob after 3m0s: pod j-w-0 is pending"]


def test_an_event_that_a_plan_repeats_says_so():
    snapshot = delayed.policy("PodFailed", "AbortJob", timeout="1m").pod(failed("w", 0, since=NOW), running("w", 1))
    assert [note.standing for note in snapshot.plan().events] == [True]


def test_a_command_in_vain_leaves_policies_and_their_timers_as_they_are():
    snapshot = delayed.policy("PodFailed", "AbortJob", timeout="2m").pod(failed("w", 0, since=NOW), running("w", 1))
    made = snapshot.command("ResumeJob").plan()
    assert (made.wake, [note.reason for note in made.events]) == (NOW + 120, ["ActionIgnored", "ExecuteAction"])
    made = snapshot.at(120).command("ResumeJob").plan()
    assert (action(made), [note.reason for note in made.events]) == ("AbortJob", ["ExecuteAction", "ActionIgnored"])

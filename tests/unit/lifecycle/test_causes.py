"""What counts as an event: read from what is there, fenced by what was decided, never an effect of our own doing."""

import pytest
from tests.unit.lifecycle.builders import (
    BEFORE,
    NOW,
    SnapshotBuilder,
    exits,
    failed,
    job,
    pending,
    running,
    succeeded,
    terminating,
    unknown,
)

from vcjob.api.job import Event
from vcjob.lifecycle.causes import find_causes
from vcjob.lifecycle.census import take_census


def causes(builder: SnapshotBuilder) -> list[tuple[Event, str, int]]:
    snapshot = builder.make()
    found = find_causes(snapshot, take_census(snapshot.revision.job, snapshot.pods))
    return [(cause.event, cause.task, cause.index) for cause in found]


watching = job().task("w", 2).policy("*", "RestartJob", timeout="1m").running()


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([running("w", 0), running("w", 1)], [], id="running Pods"),
        pytest.param([failed("w", 0)], [(Event.POD_FAILED, "w", 0)], id="a failed Pod"),
        pytest.param([pending("w", 0)], [(Event.POD_PENDING, "w", 0)], id="a pending Pod"),
        pytest.param([unknown("w", 0)], [], id="a Pod whose node is lost"),
        pytest.param([terminating("w", 0)], [(Event.POD_EVICTED, "w", 0)], id="a Pod that somebody deletes"),
        pytest.param([terminating("w", 0, ours=True)], [], id="a Pod that we delete"),
        pytest.param(
            [failed("w", 0, since=NOW - 1, deleted=NOW - 5)],
            [(Event.POD_EVICTED, "w", 0)],
            id="a deleted Pod that ended because of it",
        ),
        pytest.param(
            [failed("w", 0, since=NOW - 9, deleted=NOW - 5)],
            [(Event.POD_FAILED, "w", 0)],
            id="a Pod that had failed when it was deleted",
        ),
        pytest.param(
            [failed("w", 0, since=NOW - 99, deleted=NOW - 5, orphaned=True)],
            [(Event.POD_FAILED, "w", 0), (Event.POD_EVICTED, "w", 0)],
            id="a Pod whose node is gone",
        ),
        pytest.param([succeeded("w", 0, deleted=NOW)], [], id="a succeeded Pod that is cleaned up"),
        pytest.param([succeeded("w", 0)], [], id="one of two succeeded"),
        pytest.param([succeeded("w", 0), succeeded("w", 1)], [(Event.TASK_COMPLETED, "w", 1)], id="a completed task"),
        pytest.param([running("w", 0, restarts=1), running("w", 1, restarts=1)], [], id="restarts below maxRetry"),
        pytest.param(
            [running("w", 0, restarts=1), running("w", 1, restarts=2)],
            [(Event.TASK_FAILED, "w", 1)],
            id="a failed task",
        ),
        pytest.param([failed("w", 7)], [], id="a failed Pod beyond the replicas"),
        pytest.param([terminating("w", 2)], [], id="a Pod that a scaling takes away"),
        pytest.param([running("w", 2, restarts=9)], [], id="restarts of a Pod beyond the replicas"),
        pytest.param([failed("w", 0, owner_uid="other")], [], id="a Pod of an earlier Job"),
    ],
)
def test_an_event_is_read_from_the_pods(pods, expected):
    assert causes(watching.pod(*pods)) == expected


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(failed("w", 0), id="failed"),
        pytest.param(pending("w", 0), id="pending"),
        pytest.param(terminating("w", 0), id="terminating"),
        pytest.param(running("w", 0, restarts=9), id="restarting containers"),
    ],
)
@pytest.mark.parametrize(
    "fenced",
    [
        pytest.param(watching.phase("Running", version=1), id="by a kill of the whole Job"),
        pytest.param(watching.phase("Aborting", version=1), id="by an abort"),
        pytest.param(watching.restarting("w:0", retry_count=1), id="by a restart of this Pod"),
    ],
)
def test_what_was_decided_about_is_no_event_again(fenced, item):
    assert causes(fenced.pod(item)) == []


def test_tasks_completed_before_the_present_run_are_no_event():
    resumed = watching.phase("Running", version=2).pod(succeeded("w", 0), succeeded("w", 1))
    assert causes(resumed) == []


def test_a_vanished_pod_is_an_eviction_until_it_is_replaced():
    gone = watching.removed(running("w", 1)).pod(running("w", 0))
    assert causes(gone) == [(Event.POD_EVICTED, "w", 1)]
    assert causes(gone.pod(running("w", 1, uid="new"))) == []


def test_a_pod_that_vanished_while_the_operator_was_away_is_known_from_the_counters():
    away = watching.memory(fresh=True).counted(w={"Running": 2}).pod(running("w", 0))
    assert causes(away) == [(Event.POD_EVICTED, "w", 1)]


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(watching.counted(w={"Running": 2}).pod(running("w", 0), succeeded("w", 1)), id="one has finished"),
        pytest.param(watching.counted(w={"Running": 1}).pod(running("w", 0)), id="it was never there"),
        pytest.param(watching.counted(w={"Running": 2}).scale("w", 1).pod(running("w", 0)), id="it was scaled away"),
        pytest.param(watching.counted(w={"Failed": 1, "Running": 1}).pod(running("w", 0)), id="it had finished"),
        pytest.param(watching.restarting(retry_count=1).counted(w={"Running": 2}), id="a restart is going on"),
    ],
)
def test_what_the_counters_do_not_prove_is_no_eviction(away):
    assert causes(away.memory(fresh=True)) == []


def test_an_eviction_counts_from_the_moment_the_deletion_was_asked_for():
    snapshot = watching.removed(terminating("w", 1, deleted=BEFORE)).pod(running("w", 0)).make()
    (cause,) = find_causes(snapshot, take_census(snapshot.revision.job, snapshot.pods))
    assert cause.since == BEFORE


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(failed("w", 1), [(Event.POD_FAILED, "w", 1)], id="it had failed"),
        pytest.param(
            failed("w", 1, deleted=NOW, orphaned=True),
            [(Event.POD_FAILED, "w", 1), (Event.POD_EVICTED, "w", 1)],
            id="its node is gone",
        ),
        pytest.param(failed("w", 2), [], id="it was beyond the replicas"),
        pytest.param(failed("w", 1, job_version=-1), [], id="it was of an earlier run"),
    ],
)
def test_a_failed_pod_that_vanished_before_anybody_looked_has_failed(gone, expected):
    assert causes(watching.removed(gone).pod(running("w", 0))) == expected
    assert causes(watching.removed(gone).pod(running("w", 0), running("w", 1))) == []


def test_the_replacement_of_an_evicted_pod_keeps_the_event_until_it_runs():
    evicted = job().task("w", 1).policy("PodEvicted", "AbortJob", timeout="5m").running()
    assert causes(evicted.pod(pending("w", 0, evicted_at=BEFORE))) == [(Event.POD_EVICTED, "w", 0)]
    assert causes(evicted.pod(running("w", 0, evicted_at=BEFORE))) == []


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param({"phase": "Unknown"}, [(Event.UNKNOWN, "", -1)], id="Unknown"),
        pytest.param({"phase": "Running"}, [], id="Running"),
        pytest.param({"phase": "Unknown", "deleted": True}, [], id="on its way out"),
        pytest.param({"phase": "Unknown", "job_version": 1}, [], id="of an earlier run"),
    ],
)
def test_a_group_in_phase_unknown_is_an_event(group, expected):
    snapshot = watching.phase("Running", version=2).volcano(**{"job_version": 2, **group})
    assert causes(snapshot.pod(running("w", 0, job_version=2), running("w", 1, job_version=2))) == expected


def test_the_oldest_event_comes_first():
    found = causes(watching.pod(failed("w", 1, since=BEFORE), failed("w", 0, since=BEFORE + 1)))
    assert [index for _, _, index in found] == [1, 0]


def test_nothing_is_looked_for_when_no_policy_asks():
    assert causes(job().task("w", 1).running().pod(failed("w", 0, exits=exits(main=3)))) == []

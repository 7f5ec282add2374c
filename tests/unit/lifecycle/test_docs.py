"""docs/policies.md says what the code does: its phase table, and every status that it shows."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.lifecycle.builders import (
    NOW,
    Exit,
    SnapshotBuilder,
    failed,
    job,
    pending,
    running,
    succeeded,
    terminating,
)

from vcjob.lifecycle.docs import PAGE, refresh

TEXT = (Path(__file__).parents[3] / PAGE).read_text()

w1, w2 = job().task("w", 1), job().task("w", 2)
chain = job().task("first", 1).task("second", 1, dependsOn={"name": ["first"]}).spec(minAvailable=1).pending()
killed = "pod j-w-0 failed: container main ended with exit code 1; RestartJob; retry {} of {}"
paused = w2.running().command("AbortJob", reason="maintenance").pod(running("w", 0), running("w", 1))
leaving = (terminating("w", 0), terminating("w", 1))
oom = (Exit(container="main", code=137, reason="OOMKilled"),)
evicted = w1.policy("PodEvicted", "RestartJob").running().pod(terminating("w", 0))


def later(builder: SnapshotBuilder) -> SnapshotBuilder:
    """Return the snapshot after the status of its plan was written."""
    return builder.after(builder.plan()).given(command=None)


SHOWN: list[Any] = [
    w2,
    w2.pending().pod(pending("w", 0), pending("w", 1, detail="container main: ErrImagePull")),
    w2.pending().volcano("Pending"),
    w2.pending().volcano("Pending", condition="Unschedulable", message="0/3 nodes fit"),
    w2.given(knows_queues=True),
    w2.pod(running("w", 0, owner_uid="")),
    w2.pod(running("w", 0, owner_uid="old")),
    chain.pod(pending("first", 0)),
    w1.restarting("job", version=1, retry_count=1, message=killed.format(1, 3)),
    w2.running().pod(running("w", 0), succeeded("w", 1)),
    w1.plugin("nope").running().pod(running("w", 0)),
    w1.policy("PodFailed", "RestartPod").running().pod(failed("w", 0, exits=oom)),
    later(evicted),
    w1.spec(maxRetry=9).restarting(
        "job", reason="PodFailed", version=3, retry_count=3, last_transition=NOW - 1, message=killed.format(3, 9)
    ),
    later(paused).no_pods().pod(*leaving),
    later(later(paused).no_pods().pod(*leaving)).no_pods(),
    w1.policy("PodPending", "TerminateJob", timeout="1m")
    .pending()
    .pod(pending("w", 0, detail="Unschedulable: 0/3 nodes are available")),
    w2.policy("TaskFailed", "TerminateJob").running().pod(running("w", 0, restarts=5), running("w", 1)),
    w2.policy("TaskCompleted", "CompleteJob").running().pod(succeeded("w", 0), succeeded("w", 1)),
    w1.policy("Unknown", "RestartJob").running().volcano("Unknown").pod(running("w", 0)),
    w2.running().pod(succeeded("w", 0), succeeded("w", 1)),
    w2.spec(minSuccess=1).running().pod(succeeded("w", 0), running("w", 1)),
    w2.running().pod(succeeded("w", 0), failed("w", 1)),
    w1.restarting("alive", version=1, retry_count=3, message="pod j-w-0 failed; RestartJob"),
    w1.plugin("nope"),
]


def test_the_phase_table_is_up_to_date():
    assert refresh(TEXT) == TEXT, "run python -m vcjob.lifecycle.docs"


@pytest.mark.parametrize("snapshot", SHOWN)
def test_a_status_that_is_shown_is_what_a_job_says(snapshot):
    status = snapshot.plan().status
    message = status.message.replace("|", "\\|")
    assert f"| {status.phase} | `{status.reason}` | `{message}` |" in TEXT


def test_every_status_that_is_shown_is_made_here_or_by_a_refusal():
    rows = [line for line in TEXT.split("## What a Job says")[1].splitlines() if line.startswith("| ")]
    refused = [row for row in rows if "`ClaimNotFound`" in row or "`QuotaExceeded`" in row]
    assert len(rows) - 1 == len(SHOWN) + len(refused)

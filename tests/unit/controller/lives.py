"""Random Jobs and lives, for property tests."""

from typing import Any

from hypothesis import strategies as st
from tests.unit.controller.world import MOVES

from vcjob.admission.defaulting import default_job

__all__ = ("jobs", "moves")

actions = st.sampled_from(
    ["AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob"]
)
events = st.sampled_from(["*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed"])


@st.composite
def policies(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return a list that admission takes: no event twice, `*` alone."""
    chosen = draw(st.lists(events, max_size=3, unique=True))
    if "*" in chosen:
        chosen = ["*"]
    made = []
    for event in chosen:
        policy: dict[str, Any] = {"event": event, "action": draw(actions)}
        if event == "PodPending" or draw(st.integers(0, 3)) == 0:
            policy["timeout"] = draw(st.sampled_from(["10s", "1m"]))
        made.append(policy)
    if draw(st.integers(0, 4)) == 0 and "*" not in chosen:
        made.append({"exitCode": 2, "action": draw(actions)})
    return made


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    tasks = []
    for name in ("w", "v")[: draw(st.integers(1, 2))]:
        replicas = draw(st.integers(1, 3))
        task: dict[str, Any] = {
            "name": name,
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
            "policies": draw(policies()),
        }
        if draw(st.booleans()):
            task["minAvailable"] = draw(st.integers(0, replicas))
        if replicas == 2 and draw(st.booleans()):
            task["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 1}
        if name == "v" and draw(st.integers(0, 2)) == 0:
            task["dependsOn"] = {"name": ["w"]}
        tasks.append(task)
    spec: dict[str, Any] = {"tasks": tasks, "policies": draw(policies()), "maxRetry": draw(st.integers(1, 4))}
    total = sum(task["replicas"] for task in tasks)
    if draw(st.booleans()):
        spec["minAvailable"] = draw(st.integers(1, total))
    if draw(st.integers(0, 3)) == 0:
        spec["minSuccess"] = draw(st.integers(1, total))
    if draw(st.integers(0, 3)) == 0:
        spec["ttlSecondsAfterFinished"] = draw(st.sampled_from([0, 60]))
    if draw(st.integers(0, 2)) == 0:
        spec["plugins"] = {"svc": []}
    if draw(st.integers(0, 4)) == 0:
        spec["volumes"] = [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    return default_job(raw)


def moves(*, least: int, most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Return lives; the operator works and hears more often than anything else happens."""
    words = ["catch up"] * 8 + ["start all", "work", "hear"] * 3 + list(MOVES)
    return st.lists(st.tuples(st.sampled_from(words), st.integers(0, 23)), min_size=least, max_size=most)

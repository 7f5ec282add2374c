"""The PodGroup of a Job: what it asks for, how it follows the Job, and when it lets Pods be made."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.lifecycle.builders import UID, SnapshotBuilder
from tests.unit.lifecycle.builders import job as build

from vcjob.api.job import Job
from vcjob.gang.base import Group, GroupWish
from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang
from vcjob.lifecycle.revision import compile_job

CASES = Path(__file__).parents[2] / "data" / "conformance"
GANG = VolcanoGang()
FIRST = GroupWish(job_version=0)


def compiled(builder: SnapshotBuilder) -> Job:
    return compile_job(builder.raw).job


def spec(builder: SnapshotBuilder, wish: GroupWish = FIRST) -> dict[str, Any]:
    manifest = GANG.wanted_group(compiled(builder), wish)
    assert manifest is not None
    found: dict[str, Any] = manifest["spec"]
    return found


def group(builder: SnapshotBuilder, **fields: Any) -> Group:
    """Return the group as it is once made."""
    return Group(namespace="ns", name=f"j-{UID}", uid="g", owner_uid=UID, spec=spec(builder), **fields)


def recorded() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.json")):
        groups = json.loads(path.read_text()).get("podgroups")
        if groups:
            found.append(pytest.param(path.stem, next(iter(groups.values())), id=path.stem))
    return found


@pytest.mark.parametrize(("case", "expected"), recorded())
def test_the_group_is_what_volcano_makes_of_the_same_job(case: str, expected: dict[str, Any]):
    raw = yaml.safe_load((CASES / f"{case}.yaml").read_text())
    raw["metadata"] |= {"namespace": "<ns>", "uid": "<job-uid>", "generation": 1}
    made = GANG.wanted_group(compile_job(raw).job, FIRST)
    assert made is not None
    want = {key: value for key, value in expected["metadata"].items() if key != "ownerReferences"}
    assert made["metadata"] == want
    assert made["spec"] == expected["spec"]


def test_two_gpus_in_two_tasks():
    pod = {
        "containers": [
            {
                "name": "m",
                "image": "i",
                "resources": {"limits": {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}},
            }
        ]
    }
    made = spec(build().task("a", 1, pod=pod).task("b", 1, pod=pod))
    assert made["minResources"] == {
        **dict.fromkeys(("count/pods", "pods", "cpu", "requests.cpu", "limits.cpu"), "2"),
        **dict.fromkeys(("memory", "requests.memory", "limits.memory"), "2000Mi"),
        **dict.fromkeys(("nvidia.com/gpu", "requests.nvidia.com/gpu"), "2"),
    }


def cpu(amount: str, **container: Any) -> dict[str, Any]:
    return {"name": f"c{amount}", "image": "i", "resources": {"requests": {"cpu": amount}}, **container}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({"containers": [cpu("1"), cpu("2")]}, "3", id="containers add up"),
        pytest.param({"containers": [cpu("1")], "initContainers": [cpu("5")]}, "5", id="an init container needs more"),
        pytest.param({"containers": [cpu("4")], "initContainers": [cpu("3")]}, "4", id="an init container needs less"),
        pytest.param(
            {"containers": [cpu("1")], "initContainers": [cpu("2", restartPolicy="Always"), cpu("3")]},
            "5",
            id="a sidecar runs beside what follows it",
        ),
        pytest.param({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}, "1250m", id="overhead"),
        pytest.param({"containers": [cpu("1")], "resources": {"requests": {"cpu": "7"}}}, "7", id="the Pod's own"),
        pytest.param(
            {"containers": [{"name": "m", "image": "i", "resources": {"limits": {"cpu": "2"}}}]}, "2", id="limits only"
        ),
    ],
)
def test_what_a_pod_needs(pod, expected):
    assert spec(build().task("w", 1, pod=pod))["minResources"]["requests.cpu"] == expected


def test_the_minimum_is_taken_from_the_tasks_of_the_highest_priority():
    low = {"containers": [cpu("1")]}
    high = {"containers": [cpu("10")], "priorityClassName": "high"}
    snapshot = build().task("low", 2, pod=low).task("high", 2, pod=high).spec(minAvailable=3)
    wish = GroupWish(job_version=0, priorities={"high": 5})
    assert spec(snapshot, wish)["minResources"]["cpu"] == "21"
    assert spec(snapshot)["minResources"]["cpu"] == "12"


def test_task_minimums_are_taken_first_when_the_jobs_minimum_covers_them():
    pods = ({"containers": [cpu("1")]}, {"containers": [cpu("10")]})
    snapshot = build().task("a", 3, minAvailable=1, pod=pods[0]).task("b", 3, minAvailable=1, pod=pods[1])
    assert spec(snapshot.spec(minAvailable=3))["minResources"]["cpu"] == "12"


def test_nothing_is_asked_for_when_nothing_is_needed():
    assert spec(build().task("w", 2).scale("w", 0)) == {
        "minMember": 0,
        "minTaskMember": {"w": 0},
        "queue": "default",
        "minResources": {},
    }


def test_partitions_become_subgroups():
    partitions = {
        "totalPartitions": 2,
        "partitionSize": 4,
        "minPartitions": 1,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
    }
    made = spec(build().task("w", 8, partitionPolicy=partitions))
    assert made["minTaskMember"] == {"w": 4}
    assert made["subGroupPolicy"] == [
        {
            "name": "w",
            "subGroupSize": 4,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
        }
    ]


def test_labels_and_annotations_of_the_job_are_the_groups_and_later_runs_say_their_version():
    snapshot = build().task("w", 1).annotated(team="a")
    made = GANG.wanted_group(compiled(snapshot), GroupWish(job_version=2))
    assert made is not None
    assert made["metadata"]["annotations"] == {"team": "a", "volcano.sh/job-version": "2"}


two = build().task("w", 2)


def test_a_group_that_is_right_is_left_alone():
    assert GANG.changes(group(two), compiled(two), FIRST) is None


def test_equal_amounts_are_equal_however_they_are_written():
    pod = {"containers": [cpu("1000m")]}
    wanted = build().task("w", 1, pod=pod)
    stored = group(build().task("w", 1, pod={"containers": [cpu("1")]}))
    assert GANG.changes(stored, compiled(wanted), FIRST) is None


def test_a_group_follows_a_scaling():
    patch = GANG.changes(group(two), compiled(two.scale("w", 3)), FIRST)
    assert patch == {
        "spec": {"minMember": 3, "minTaskMember": {"w": 3}, "minResources": {"pods": "3", "count/pods": "3"}}
    }


def test_a_group_forgets_tasks_and_resources_that_are_gone():
    before = build().task("w", 1, pod={"containers": [cpu("1")]}).task("v", 1)
    patch = GANG.changes(group(before), compiled(build().task("w", 1)), FIRST)
    assert patch is not None
    assert patch["spec"]["minTaskMember"] == {"w": 1, "v": None}
    assert patch["spec"]["minResources"]["cpu"] is None


@pytest.mark.parametrize(
    ("phase", "deleted", "admits"),
    [("", False, False), ("Pending", False, False), ("Inqueue", False, True), ("Running", False, True),
     ("Unknown", False, True), ("Completed", False, True), ("Running", True, False)],
)  # fmt: skip
def test_pods_are_made_once_the_scheduler_has_let_the_group_in(phase, deleted, admits):
    assert GANG.admits(group(two, phase=phase, deleted=deleted)) is admits
    assert not GANG.admits(None)


# What waits for other tasks


chain = build().task("a", 1).task("b", 1, dependsOn={"name": ["a"]}).task("c", 1, dependsOn={"name": ["b"]})


def minimum(startable: int | None, *, have: int = 3, **fields: Any) -> int | None:
    stored = group(chain, **fields)
    stored.spec["minMember"] = have
    patch = GANG.changes(stored, compiled(chain), GroupWish(job_version=0, startable=startable)) or {"spec": {}}
    changed: int = patch["spec"].get("minMember", have)
    return changed


def test_the_full_minimum_stands_while_nobody_complains():
    assert minimum(1) == 3


def test_an_unschedulable_group_asks_only_for_what_can_start():
    assert minimum(1, unschedulable=True) == 1


def test_a_lowered_minimum_stays_low_and_grows_with_what_can_start():
    assert minimum(1, have=1) == 1
    assert minimum(2, have=1) == 2


def test_the_full_minimum_returns_when_nothing_waits_any_more():
    assert minimum(None, have=2) == 3


@pytest.mark.parametrize(("said", "expected"), [("", "mine"), ("other", "other")])
def test_pods_that_name_no_scheduler_go_to_the_gang_scheduler(said: str, expected: str):
    assert VolcanoGang(gang_scheduler_name="mine").scheduler_name(said) == expected


# Without groups


def test_without_a_gang_scheduler_pods_are_made_at_once_by_the_clusters_own():
    gang = NoGang(gang_scheduler_name="volcano")
    assert gang.admits(None)
    assert [gang.scheduler_name(name) for name in ("", "volcano", "mine")] == ["", "", "mine"]
    assert gang.wanted_group(compiled(two), FIRST) is None

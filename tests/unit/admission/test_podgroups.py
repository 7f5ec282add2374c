"""Which Queue a PodGroup goes to, and which groups are let in."""

from typing import Any

import pytest
from hypothesis import given

from vcjob.admission.podgroups import belongs_to_job, podgroup_patch, podgroup_queue, validate_podgroup
from vcjob.admission.problem import denial
from vcjob.admission.queues import check_group_queue

from .builders import group, queue
from .strategies import anything

TWICE = {"highestTierAllowed": 2, "highestTierName": "rack"}


def namespace(wanted: str | None) -> dict[str, Any]:
    annotations = {"scheduling.volcano.sh/queue-name": wanted} if wanted is not None else {}
    return {"metadata": {"name": "team", "annotations": annotations}}


@pytest.mark.parametrize(
    ("raw", "wanted", "value"),
    [
        pytest.param(group(), "science", "science", id="the default queue"),
        pytest.param(group(queue=""), "science", "science", id="no queue"),
        pytest.param(group(queue="own"), "science", None, id="a queue of its own"),
        pytest.param(group(), None, None, id="no annotation"),
        pytest.param(group(), "default", None, id="the default queue by annotation"),
    ],
)
def test_a_namespace_gives_its_queue_to_groups_that_name_none(raw: Any, wanted: str | None, value: str | None) -> None:
    patch = podgroup_patch(raw, namespace=namespace(wanted))
    assert [operation["value"] for operation in patch] == ([value] if value else [])


def test_a_group_without_a_spec_gets_its_queue_too() -> None:
    (operation,) = podgroup_patch({"metadata": {}}, namespace=namespace("science"))
    assert (operation["path"], operation["value"]) == ("/spec", {"queue": "science"})


@pytest.mark.parametrize(
    ("found", "of_job", "fragment"),
    [
        pytest.param(queue(), False, "", id="open"),
        pytest.param({"spec": {}}, False, "", id="without a state"),
        pytest.param(None, False, "unable to find queue: science", id="gone"),
        pytest.param(None, True, "unable to find queue: science", id="gone, of a Job"),
        pytest.param(
            queue(state="Closed"),
            False,
            "can only submit PodGroup to queue with state `Open`, queue `science` status is `Closed`",
            id="closed",
        ),
        pytest.param(queue(state="Closing"), True, "", id="closing, of a Job that restarts"),
    ],
)
def test_a_queue_takes_a_group_or_says_why_not(found: Any, of_job: bool, fragment: str) -> None:
    problem = check_group_queue(found, "science", of_job=of_job)
    assert fragment in str(problem) if fragment else problem is None


def test_only_a_controlling_job_makes_it_the_group_of_a_job() -> None:
    assert belongs_to_job(group(job="train"))
    assert not belongs_to_job(group())
    other = group(job="train")
    other["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"
    assert not belongs_to_job(other)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        pytest.param(group(networkTopology=TWICE), "spec.networkTopology.highestTierName", id="of the group"),
        pytest.param(
            group(subGroupPolicy=[{"name": "a"}, {"name": "b", "networkTopology": TWICE}]),
            "spec.subGroupPolicy[1].networkTopology.highestTierName",
            id="of a part",
        ),
        pytest.param(group(minMember="x"), "spec.minMember", id="unreadable"),
        pytest.param(group(networkTopology={"highestTierAllowed": 2}), "", id="one of the two"),
    ],
)
def test_a_highest_tier_is_given_once(raw: Any, field: str) -> None:
    assert denial(validate_podgroup(raw)).startswith(field)
    assert bool(validate_podgroup(raw)) == bool(field)


@given(anything(), anything())
def test_no_input_makes_the_rules_raise(raw: Any, around: Any) -> None:
    podgroup_patch(raw, namespace=around)
    validate_podgroup(raw)
    belongs_to_job(raw)
    assert podgroup_queue(raw)

"""Which Queues are made, changed and removed; the fragments are those that users of Volcano know."""

from typing import Any

import pytest
from hypothesis import given

from vcjob.admission.problem import denial
from vcjob.admission.queue_rules import QueuePolicy, queue_patch, validate_queue, validate_queue_removal
from vcjob.admission.queue_tree import make_tree

from .builders import queue
from .strategies import anything

POLICY = QueuePolicy()
ROOT = queue("root")

Raw = dict[str, Any]


def refusal(new: Raw, *others: Raw, old: Raw | None = None, policy: QueuePolicy = POLICY) -> str:
    """Return why a Queue is refused where `others` are there, and `old` when it is a change."""
    there = (*others, old) if old else others
    return denial(validate_queue(new, old=old, tree=make_tree(there), policy=policy))


# Defaults


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        pytest.param({}, {"reclaimable": True, "weight": 1}, id="both"),
        pytest.param({"weight": 0, "reclaimable": False}, {"weight": 1}, id="no weight"),
        pytest.param({"weight": 7, "reclaimable": None}, {"reclaimable": True}, id="explicit null"),
        pytest.param({"weight": 7, "reclaimable": False}, {}, id="what is said stays"),
    ],
)
def test_a_new_queue_is_reclaimable_and_has_a_weight(spec: Raw, filled: Raw) -> None:
    patch = queue_patch({"metadata": {"name": "q"}, "spec": spec})
    assert {operation["path"].removeprefix("/spec/"): operation["value"] for operation in patch} == filled


def test_a_queue_without_a_spec_gets_one() -> None:
    (operation,) = queue_patch({"metadata": {"name": "q"}})
    assert operation == {"op": "add", "path": "/spec", "value": {"reclaimable": True, "weight": 1}}


@pytest.mark.parametrize(
    ("path", "weights", "rooted"),
    [
        pytest.param("science/physics", "2/8", ["root/science/physics", "1/2/8"], id="without root"),
        pytest.param("rooted/physics", "2/8", ["root/rooted/physics", "1/2/8"], id="a name that begins like root"),
        pytest.param("root/science", "1/2", [], id="with root"),
        pytest.param("science", "", [], id="no weights"),
        pytest.param("", "2", [], id="no path"),
    ],
)
def test_a_hierarchy_begins_at_the_root(path: str, weights: str, rooted: list[str]) -> None:
    patch = queue_patch(queue(hierarchy=(path, weights)))
    assert [operation["value"] for operation in patch] == rooted
    assert all(operation["path"].startswith("/metadata/annotations/volcano.sh~1hierarchy") for operation in patch)


# The Queue itself


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(queue(), id="a plain one"),
        pytest.param(queue(state="Closed"), id="closed"),
        pytest.param(queue(deserved={"cpu": 4}), id="only deserved"),
        pytest.param(queue(capability={"cpu": "4"}, deserved={"cpu": "4000m"}), id="as much as its capability"),
        pytest.param(queue(capability={"cpu": 4}, deserved={"memory": "1Gi"}), id="a resource without capability"),
        pytest.param(queue(guarantee={"cpu": 2}, deserved={"cpu": 2}), id="as much as its guarantee"),
        pytest.param(queue(guarantee={"cpu": 0}), id="nothing guaranteed"),
        pytest.param(queue(hierarchy=("root/science", "1/2.5")), id="hierarchy"),
        pytest.param(queue(parent="root"), id="below root, which need not be there"),
    ],
)
def test_a_good_queue_is_let_in(new: Raw) -> None:
    assert refusal(new) == ""


@pytest.mark.parametrize(
    ("new", "fragment"),
    [
        pytest.param(queue(guarantee={"cpu": 2}), "deserved[cpu] must be >= guarantee[cpu]", id="only guarantee"),
        pytest.param(
            queue(guarantee={"cpu": 2}, deserved={"cpu": "1900m"}), "must be >= guarantee[cpu], which is 2", id="less"
        ),
        pytest.param(
            queue(capability={"cpu": 2}, deserved={"cpu": 3}), "deserved[cpu] must be <= capability[cpu]", id="more"
        ),
        pytest.param(queue(capability={"cpu": "lots"}), "spec.capability[cpu]: 'lots' is not a quantity", id="unit"),
        pytest.param(queue(deserved={"cpu": -1}), "must be greater than or equal to 0", id="negative"),
        pytest.param(queue(guarantee={"cpu": "x"}), "spec.guarantee.resource[cpu]", id="where the quantity is"),
        pytest.param(queue(state="Closing"), "queue state must be in [Open Closed]", id="state"),
        pytest.param(queue(hierarchy=("root/a", "")), "must have the same length", id="no weights"),
        pytest.param(queue(hierarchy=("root/a", "1/2/3")), "must have the same length", id="too many weights"),
        pytest.param(queue(hierarchy=("root/a", "1/-2")), "must be a number larger than 0", id="negative weight"),
        pytest.param(queue(hierarchy=("root/a", "1/0")), "must be a number larger than 0", id="weight 0"),
        pytest.param(queue(hierarchy=("root/a", "1/nan")), "must be a number larger than 0", id="no number"),
        pytest.param({**queue(), "spec": 7}, "spec: ", id="no spec"),
    ],
)
def test_a_bad_queue_is_refused_with_the_reason(new: Raw, fragment: str) -> None:
    assert fragment in refusal(new)


def test_a_hierarchy_must_not_be_above_that_of_another_queue() -> None:
    physics = queue("physics", hierarchy=("root/science/physics", "1/2/3"))
    assert "queue `physics` is at root/science/physics" in refusal(queue(hierarchy=("root/science", "1/2")), physics)
    assert refusal(queue(hierarchy=("root/sci", "1/2")), physics) == ""


# Its place


@pytest.mark.parametrize(
    ("parent", "fragment"),
    [
        pytest.param("science", "a queue can not be its own parent", id="itself"),
        pytest.param("gone", "unable to find parent queue: gone", id="nobody"),
        pytest.param("busy", "queue `busy` has no child queues yet and 3 Pods of its own", id="a leaf in use"),
        pytest.param("e", "the tree would have 6 levels below root; 5 are allowed", id="too deep"),
        pytest.param("d", "", id="as deep as may be"),
        pytest.param("family", "", id="one that has children and Pods"),
    ],
)
def test_a_parent_must_be_there_and_take_children(parent: str, fragment: str) -> None:
    chain = [queue(name, parent=above) for name, above in zip("abcde", ["root", *"abcd"], strict=True)]
    others = (*chain, queue("busy", pods=3), queue("family", pods=3), queue("child", parent="family"))
    assert fragment in refusal(queue(parent=parent), *others)
    assert bool(fragment) == bool(refusal(queue(parent=parent), *others))


def test_a_queue_can_not_be_moved_below_its_own_children() -> None:
    child = queue("physics", parent="science")
    problem = refusal(queue(parent="physics"), child, old=queue())
    assert "queue `physics` is below queue `science` itself" in problem


def test_a_subtree_keeps_the_depth_when_it_is_moved() -> None:
    others = (queue("physics", parent="science"), queue("other"))
    policy = QueuePolicy(max_depth=2)
    assert "the tree would have 3 levels" in refusal(queue(parent="other"), *others, old=queue(), policy=policy)


def test_the_parent_is_judged_only_when_it_changes() -> None:
    orphan = queue(parent="gone")
    assert refusal(queue(parent="gone", weight=5), old=orphan) == ""
    assert refusal(queue(parent="root"), old=queue()) == ""


def test_the_root_has_no_parent() -> None:
    assert "the root queue has no parent" in refusal(queue("root", parent="science"), queue(), old=ROOT)


# Shares in the tree

FAMILY = queue("family", capability={"cpu": 10}, deserved={"cpu": 8}, guarantee={"cpu": 4})
CHILD = queue("child", parent="family", capability={"cpu": 6}, deserved={"cpu": 5}, guarantee={"cpu": 3})


@pytest.mark.parametrize(
    ("new", "fragment"),
    [
        pytest.param(
            queue(parent="family", capability={"cpu": 11}), "must be <= that of queue `family`", id="capability"
        ),
        pytest.param(
            queue(parent="family", deserved={"cpu": 4}),
            "the sum of deserved[cpu] of the children of queue `family` (child, science) must be <= its own, 8",
            id="deserved",
        ),
        pytest.param(
            queue(parent="family", deserved={"cpu": 2}, guarantee={"cpu": 2}),
            "the sum of guarantee[cpu]",
            id="guarantee",
        ),
        pytest.param(queue(parent="child", capability={"cpu": 7}), "that of queue `child` above it, 6", id="nearest"),
        pytest.param(queue(parent="family", deserved={"cpu": 3, "memory": "1Ti"}), "", id="not listed above"),
        pytest.param(queue(capability={"cpu": 999}, deserved={"cpu": 999}), "", id="below root there is no sum"),
    ],
)
def test_a_share_fits_below_its_parent(new: Raw, fragment: str) -> None:
    problem = refusal(new, FAMILY, CHILD)
    assert fragment in problem
    assert bool(fragment) == bool(problem)


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        pytest.param({"capability": {"cpu": 5}}, "capability[cpu] of queue `child`", id="capability"),
        pytest.param(
            {"deserved": {"cpu": 4}}, "the sum of deserved[cpu] of the children of queue `family`", id="deserved"
        ),
        pytest.param({"guarantee": {"cpu": 2}}, "the sum of guarantee[cpu]", id="guarantee"),
        pytest.param({"capability": {"cpu": 8}}, "", id="still enough"),
        pytest.param({"capability": {}}, "", id="no limit of its own"),
    ],
)
def test_a_share_fits_above_its_children(change: Raw, fragment: str) -> None:
    amounts = {"capability": {"cpu": 10}, "deserved": {"cpu": 8}, "guarantee": {"cpu": 4}, **change}
    problem = refusal(queue("family", **amounts), CHILD, old=FAMILY)
    assert fragment in problem
    assert bool(fragment) == bool(problem)


def test_a_limit_reaches_down_past_queues_without_one() -> None:
    others = (queue("middle", parent="family"), queue("leaf", parent="middle", capability={"cpu": 9}))
    smaller = queue("family", capability={"cpu": 8}, deserved={"cpu": 8}, guarantee={"cpu": 4})
    assert "capability[cpu] of queue `leaf` must be <= that of queue `family`" in refusal(smaller, *others, old=FAMILY)
    moved = queue("middle", parent="small")
    assert "that of queue `small` above it, 2" in refusal(
        moved, FAMILY, *others, queue("small", capability={"cpu": 2}), queue("other", parent="small"), old=others[0]
    )


def test_an_old_fault_does_not_stop_other_changes() -> None:
    greedy = queue("child", parent="family", deserved={"cpu": 99}, guarantee={"cpu": 99})
    assert refusal({**greedy, "spec": {**greedy["spec"], "weight": 9}}, FAMILY, old=greedy) == ""


def test_an_old_fault_is_mended_in_steps() -> None:
    there = (FAMILY, queue("other", parent="family", deserved={"cpu": 7}))
    greedy = queue("child", parent="family", deserved={"cpu": 99}, capability={"cpu": 99})
    assert (
        refusal(queue("child", parent="family", deserved={"cpu": 9}, capability={"cpu": 90}), *there, old=greedy) == ""
    )
    assert refusal(queue("family", deserved={"cpu": 20}, capability={"cpu": 20}), *there[1:], greedy, old=FAMILY) == ""
    assert "the sum of deserved[cpu]" in refusal(
        queue("child", parent="family", deserved={"cpu": 100}), *there, old=greedy
    )


def test_a_closing_queue_may_be_changed() -> None:
    assert refusal(queue(state="Closing", weight=2), old=queue(state="Closing")) == ""


def test_labels_of_a_broken_queue_stay_writable() -> None:
    broken = {**queue(), "spec": {"capability": {"cpu": "x"}}}
    assert refusal({**broken, "metadata": {"name": "science", "labels": {"a": "b"}}}, old=broken) == ""


def test_without_a_tree_the_queue_itself_is_judged() -> None:
    lost = queue(parent="gone", guarantee={"cpu": 1})
    assert [p.field for p in validate_queue(lost, old=None, tree=None, policy=POLICY)] == ["spec.deserved"]


# The root


def test_the_share_of_the_root_is_protected() -> None:
    bigger = queue("root", capability={"cpu": 1})
    assert "of the root queue may not be changed" in refusal(bigger, old=ROOT)
    assert refusal(bigger, old=ROOT, policy=QueuePolicy(protects_root=False)) == ""
    assert refusal(queue("root", weight=3), old=ROOT) == ""
    same = queue("root", capability={"cpu": "1000m"})
    assert refusal(same, old=bigger) == ""


# Removal


@pytest.mark.parametrize(
    ("old", "policy", "fragment"),
    [
        pytest.param(queue("default"), POLICY, "`default` queue can not be deleted", id="default"),
        pytest.param(queue("root"), POLICY, "`root` queue can not be deleted", id="root"),
        pytest.param(queue("family"), POLICY, "has 1 child queues: child", id="children"),
        pytest.param(queue(pods=2), POLICY, "", id="in use"),
        pytest.param(
            queue(pods=2), QueuePolicy(keeps_used=True), "2 Pods still hold resources", id="kept while in use"
        ),
        pytest.param(queue(), QueuePolicy(keeps_used=True), "", id="not in use"),
        pytest.param(queue(state="Open"), POLICY, "", id="open"),
    ],
)
def test_a_queue_is_removed_or_it_is_said_why_not(old: Raw, policy: QueuePolicy, fragment: str) -> None:
    problem = denial(validate_queue_removal(old, tree=make_tree((old, CHILD)), policy=policy))
    assert fragment in problem
    assert bool(fragment) == bool(problem)


# Laws


@given(anything(), anything())
def test_no_input_makes_the_rules_raise(new: Any, old: Any) -> None:
    tree = make_tree([queue for queue in (new, old) if isinstance(queue, dict)])
    queue_patch(new)
    validate_queue(new, old=None, tree=tree, policy=POLICY)
    validate_queue(new, old=old, tree=tree, policy=POLICY)
    validate_queue_removal(old, tree=tree, policy=POLICY)


@pytest.mark.parametrize("parents", [("b", "a"), ("a", "b"), ("b", "root")])
def test_a_circle_that_is_there_already_ends_no_one_up_in_it(parents: tuple[str, str]) -> None:
    there = tuple(queue(name, parent=parent, capability={"cpu": 1}) for name, parent in zip("ab", parents, strict=True))
    assert refusal(queue("c", parent="a", capability={"cpu": 2}), *there)
    assert refusal(queue("a", parent="root", capability={"cpu": 2}), *there[1:], old=there[0]) == ""

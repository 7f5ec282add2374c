"""env: every container knows the index of its Pod."""

import pytest

from .builders import container, job


@pytest.mark.parametrize("index", [0, 1, 1999])
def test_both_variables_hold_the_index(index: int) -> None:
    made = job().plugin("env").task("w", 2000)
    assert made.env("w", index) == {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}


def test_the_variables_are_appended_behind_those_of_the_user() -> None:
    own = [{"name": "VC_TASK_INDEX", "value": "mine"}, {"name": "FOO", "value": "bar"}]
    entries = job().plugin("env").task("task-one", 1, container(env=own)).pod("task-one").containers[0]["env"]
    assert entries[:2] == own
    assert [entry["name"] for entry in entries[2:]] == ["VK_TASK_INDEX", "VC_TASK_INDEX"]


def test_it_wants_no_object_and_no_argument() -> None:
    made = job().plugin("env", "--whatever=1").task("w", 1)
    assert made.objects() == {}
    assert made.messages() == ['env: argument "--whatever" is ignored: env takes no arguments']

"""hcclrank: the rank annotation, from the environment or from the place in the Job."""

from typing import Any

import pytest

from .builders import JobBuilder, container, job

KEY = "hccl/rankIndex"


def rank(made: JobBuilder, task: str, index: int = 0) -> str | None:
    return made.plugin("hcclrank").pod(task, index).annotations.get(KEY)


@pytest.mark.parametrize(
    ("task", "index", "expected"), [("master", 0, "0"), ("master", 1, "1"), ("worker", 2, "4"), ("other", 0, None)]
)
def test_the_place_among_masters_and_workers(task: str, index: int, expected: str | None) -> None:
    assert rank(job().task("master", 2).task("worker", 3).task("other", 1), task, index) == expected


def test_workers_alone_count_from_zero() -> None:
    assert rank(job().task("worker", 3), "worker", 2) == "2"


def test_an_annotation_of_the_user_stays() -> None:
    assert rank(job().task("master", 1).annotated({KEY: "7"}), "master") == "7"
    assert rank(job().task("master", 1).annotated({KEY: ""}), "master") == "0"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param([{"name": "RANK", "value": "5"}], "5", id="a value"),
        pytest.param([{"name": "RANK", "value": ""}], "0", id="empty"),
        pytest.param(
            [{"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}], "0", id="a reference"
        ),
        pytest.param([{"name": "RANK", "value": "5"}, {"name": "RANK", "value": "6"}], "6", id="the last counts"),
    ],
)
def test_a_rank_in_the_environment_comes_first(env: list[dict[str, Any]], expected: str) -> None:
    assert rank(job().task("master", 1, container("a"), container("b", env=env)), "master") == expected


def test_the_rank_of_pytorch_is_taken() -> None:
    made = job().plugin("pytorch", "--master=main").task("main", 2).task("worker", 1)
    assert rank(made, "worker") == "2"
    assert rank(made, "main", 1) == "1"


def test_tasks_may_have_other_names() -> None:
    made = job().plugin("hcclrank", "--master=a", "--worker=b").task("a", 1).task("b", 1)
    assert made.pod("b").annotations[KEY] == "1"


def test_it_is_not_marked_and_brings_nothing() -> None:
    made = job().plugin("hcclrank").task("master", 1)
    assert made.one("hcclrank").marked is False
    assert made.objects() == {}

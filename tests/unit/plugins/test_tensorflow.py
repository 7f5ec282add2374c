"""tensorflow: TF_CONFIG says who is where."""

import json
from typing import Any

import pytest

from .builders import JobBuilder, container, job


def tf_config(made: JobBuilder, task: str, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.env(task, index)["TF_CONFIG"])
    return found


def test_the_cluster_lists_every_role_and_the_task_its_place() -> None:
    made = job().plugin("tensorflow").task("ps", 1).task("worker", 2).task("chief", 1).task("evaluator", 1)
    assert tf_config(made, "worker", 1) == {
        "cluster": {
            "ps": ["train-ps-0.train:2222"],
            "worker": ["train-worker-0.train:2222", "train-worker-1.train:2222"],
            "chief": ["train-chief-0.train:2222"],
            "evaluator": ["train-evaluator-0.train:2222"],
        },
        "task": {"type": "worker", "index": 1},
    }


def test_the_text_is_compact_and_in_a_fixed_order() -> None:
    made = job().plugin("tensorflow", "--port=3333").task("worker", 1).task("ps", 1)
    assert made.env("ps")["TF_CONFIG"] == (
        '{"cluster":{"ps":["train-ps-0.train:3333"],"worker":["train-worker-0.train:3333"]},'
        '"task":{"type":"ps","index":0}}'
    )


def test_tasks_may_have_other_names() -> None:
    made = job().plugin("tensorflow", "--ps=p", "--worker", "gpu-node").task("p", 1).task("gpu-node", 1)
    assert tf_config(made, "gpu-node")["task"] == {"type": "worker", "index": 0}
    assert list(tf_config(made, "p")["cluster"]) == ["ps", "worker"]


def test_a_side_task_sees_the_cluster_but_is_not_in_it() -> None:
    made = job().plugin("tensorflow").task("worker", 2).task("board", 1)
    assert tf_config(made, "board")["task"] == {"type": "board", "index": 0}
    assert list(tf_config(made, "board")["cluster"]) == ["worker"]


def test_a_role_without_replicas_is_left_out() -> None:
    made = job().plugin("tensorflow").task("ps", 0).task("worker", 2)
    assert list(tf_config(made, "worker")["cluster"]) == ["worker"]


@pytest.mark.parametrize(("replicas", "set_"), [(1, False), (2, True)])
def test_a_single_pod_gets_no_config(replicas: int, set_: bool) -> None:
    assert ("TF_CONFIG" in job().plugin("tensorflow").task("worker", replicas).env("worker")) is set_


def test_one_hostname_for_all_replicas_is_listed_once() -> None:
    made = job().plugin("tensorflow").task("worker", 3, hostname="box").task("ps", 1)
    assert tf_config(made, "ps")["cluster"]["worker"] == ["box.train:2222"]


def test_only_app_containers_get_it() -> None:
    made = job().plugin("tensorflow").task("ps", 1)
    pod = made.task("worker", 1, container("a"), container("b"), initContainers=[container("i")]).pod("worker")
    has = ["TF_CONFIG" in [entry["name"] for entry in found["env"]] for found in pod.every_container()]
    assert has == [False, True, True]


def test_a_cluster_too_large_for_a_variable_is_named() -> None:
    made = job().plugin("tensorflow").task("ps", 1).task("worker", 6000)
    assert "TF_CONFIG" not in made.env("ps")
    assert any("variable TF_CONFIG" in text and "/etc/volcano" in text for text in made.messages())


def test_two_thousand_workers_fit() -> None:
    made = job().plugin("tensorflow").task("ps", 1).task("worker", 2000)
    assert len(tf_config(made, "worker", 1999)["cluster"]["worker"]) == 2000


def test_a_port_out_of_range_is_named() -> None:
    made = job().plugin("tensorflow", "--port=70000").task("ps", 1).task("worker", 1)
    assert tf_config(made, "ps")["cluster"]["ps"] == ["train-ps-0.train:2222"]
    assert len(made.messages()) == 1

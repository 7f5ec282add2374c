"""pytorch: a rendezvous for all, one rank for each."""

import re

import pytest

from .builders import JobBuilder, container, job


def pytorch(*arguments: str) -> JobBuilder:
    return job().plugin("pytorch", *arguments)


def test_all_get_the_rendezvous_in_order() -> None:
    made = pytorch().task("master", 1).task("worker", 2)
    assert [(k, v) for k, v in made.env("worker", 1).items() if not k.startswith("VC_")] == [
        ("MASTER_ADDR", "train-master-0.train"),
        ("MASTER_PORT", "23456"),
        ("WORLD_SIZE", "3"),
        ("RANK", "2"),
    ]
    assert made.pod("worker").containers[0]["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]


@pytest.mark.parametrize(("masters", "workers"), [(1, 0), (1, 2), (2, 3), (3, 0)])
def test_ranks_run_from_zero_to_the_world_size_without_a_gap(masters: int, workers: int) -> None:
    made = pytorch().task("worker", workers).task("master", masters)
    pods = [("master", index) for index in range(masters)] + [("worker", index) for index in range(workers)]
    assert [made.env(*pod)["RANK"] for pod in pods] == [str(rank) for rank in range(masters + workers)]
    assert {made.env(*pod)["WORLD_SIZE"] for pod in pods} == {str(masters + workers)}


def test_a_master_alone_needs_no_worker_task() -> None:
    env = pytorch().task("master", 1).env("master")
    assert (env["WORLD_SIZE"], env["RANK"]) == ("1", "0")


def test_a_side_task_has_the_rendezvous_but_no_rank() -> None:
    env = pytorch().task("master", 1).task("worker", 1).task("board", 4).env("board", 3)
    assert env["WORLD_SIZE"] == "2"
    assert "RANK" not in env


def test_without_a_master_nothing_is_set_and_the_job_is_told() -> None:
    made = pytorch().task("worker", 1)
    assert made.env("worker").keys().isdisjoint({"MASTER_ADDR", "RANK"})
    assert made.problems() == []
    assert any("no task is named master" in text for text in made.messages())


def test_own_hostname_and_names() -> None:
    made = pytorch("--master=main", "--worker=node", "--port=29500").task("main", 1, hostname="box", subdomain="net")
    env = made.task("node", 1).env("node")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"], env["RANK"]) == ("box.net", "29500", "1")


def test_init_containers_are_left_alone() -> None:
    pod = pytorch().task("master", 1, initContainers=[container("init")]).pod("master")
    assert {entry["name"] for entry in pod.init_containers[0]["env"]} == {"VC_MASTER_HOSTS", "VC_MASTER_NUM"}
    assert "ports" not in pod.init_containers[0]


def test_the_users_variables_stay_and_ours_come_last() -> None:
    own = {"name": "RANK", "value": "mine"}
    entries = pytorch().task("master", 1, container(env=[own])).pod("master").containers[0]["env"]
    assert entries[0] == own
    assert entries[-1] == {"name": "RANK", "value": "0"}


def test_workers_wait_only_when_asked_to() -> None:
    made = pytorch().task("master", 1).task("worker", 1)
    assert made.pod("worker").init_containers == []
    waiting = made.plugin("pytorch", "--wait-master-enabled")
    assert waiting.pod("master").init_containers == []
    assert [found["name"] for found in waiting.pod("worker").init_containers] == ["wait-for-master"]


def test_the_waiting_container_comes_last_and_is_bare() -> None:
    arguments = ["--wait-master-enabled", "--wait-master-image=box:1", "--wait-master-timeout=60", "--port=1234"]
    made = pytorch(*arguments).task("master", 1).task("worker", 1, initContainers=[container("init")])
    first, last = made.pod("worker").init_containers
    assert first["name"] == "init"
    assert set(last) == {"name", "image", "command"}
    assert (last["image"], last["command"][:2]) == ("box:1", ["sh", "-c"])
    script = last["command"][2]
    assert "nc -z -w 2 train-master-0.train 1234" in script
    assert "</dev/tcp/train-master-0.train/1234" in script
    assert "-ge 60" in script


def test_kubernetes_finds_no_variable_of_its_own_in_the_script() -> None:
    made = pytorch("--wait-master-enabled").task("master", 1).task("worker", 1)
    script = made.pod("worker").init_containers[0]["command"][2]
    assert re.findall(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", script) == []


def test_a_waiting_container_of_the_user_stays() -> None:
    own = container("wait-for-master")
    made = pytorch("--wait-master-enabled").task("master", 1).task("worker", 1, initContainers=[own])
    assert [found["image"] for found in made.pod("worker").init_containers] == [own["image"]]

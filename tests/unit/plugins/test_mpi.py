"""mpi: the master knows the workers, all open the port."""

import pytest

from .builders import JobBuilder, container, job

PORT = {"name": "mpijob-port", "containerPort": 22}


def mpi(*arguments: str) -> JobBuilder:
    return job().plugin("mpi", *arguments)


def test_the_master_knows_the_workers() -> None:
    made = mpi().task("master", 1).task("worker", 2)
    assert made.env("master")["MPI_HOST"] == "train-worker-0.train,train-worker-1.train"
    assert "MPI_HOST" not in made.env("worker")


def test_init_containers_of_the_master_know_them_too() -> None:
    pod = mpi().task("master", 1, initContainers=[container("init")]).task("worker", 1).pod("master")
    assert pod.init_containers[0]["env"][-1]["name"] == "MPI_HOST"


def test_all_containers_of_all_tasks_open_the_port() -> None:
    side = container("proxy", restartPolicy="Always")
    made = mpi().task("master", 1).task("worker", 1, initContainers=[side]).task("other", 1)
    for task in ("master", "worker", "other"):
        assert all(found["ports"] == [PORT] for found in made.pod(task).every_container())


def test_without_a_worker_task_the_master_is_left_alone() -> None:
    made = mpi().task("master", 1)
    assert made.problems() == []
    assert "MPI_HOST" not in made.env("master")
    assert "ports" not in made.pod("master").containers[0]


def test_workers_without_replicas_give_an_empty_list() -> None:
    assert mpi().task("master", 1).task("worker", 0).env("master")["MPI_HOST"] == ""


def test_a_hostname_for_all_workers_is_listed_once() -> None:
    assert mpi().task("master", 1).task("worker", 3, hostname="box").env("master")["MPI_HOST"] == "box.train"


def test_tasks_may_have_other_names() -> None:
    made = mpi("--master=mpi-master", "--worker=mpi-worker", "--port=5000").task("mpi-master", 1).task("mpi-worker", 1)
    assert made.env("mpi-master")["MPI_HOST"] == "train-mpi-worker-0.train"
    assert made.pod("mpi-worker").containers[0]["ports"] == [PORT | {"containerPort": 5000}]


def test_a_missing_master_is_a_problem() -> None:
    found = mpi("--master=boss").task("master", 1).problems()
    assert len(found) == 1
    assert "The specified mpi master task was not found" in found[0]
    assert '"boss"' in found[0]


def test_a_list_too_long_for_a_variable_is_left_to_the_file() -> None:
    made = mpi("--worker=gpu-node").task("master", 1).task("gpu-node", 6000)
    assert "MPI_HOST" not in made.env("master")
    assert any("variable MPI_HOST" in text and "/etc/volcano/gpu_node.host" in text for text in made.messages())


@pytest.mark.parametrize(
    ("port", "ssh_port", "fragment"),
    [
        pytest.param(22, 22, None, id="the usual port"),
        pytest.param(5000, 22, "port is 5000 but the config of ssh connects to 22", id="different ports"),
        pytest.param(5000, 5000, None, id="another port for both"),
    ],
)
def test_ports_that_do_not_meet_are_named(port: int, ssh_port: int, fragment: str | None) -> None:
    made = mpi(f"--port={port}").plugin("ssh", f"--ssh-port={ssh_port}").task("master", 1).task("worker", 1)
    assert [fragment in text for text in made.messages()] == ([True] if fragment else [])

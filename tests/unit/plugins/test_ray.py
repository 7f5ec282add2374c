"""ray: head and workers start by themselves, and the Service leads to the head whatever its ports are called."""

from typing import Any

import pytest

from .builders import JobBuilder, container, job

OWN_PORTS = [
    {"name": "gcs", "containerPort": 6379},
    {"name": "dashboard", "containerPort": 8265},
    {"name": "client-server", "containerPort": 10001},
]


def head(**fields: Any) -> dict[str, Any]:
    return container("head", command=None) | fields


def ray(*arguments: str, **fields: Any) -> JobBuilder:
    made = job().plugin("ray", *arguments).task("head", 1, head(**fields))
    return made.task("worker", 2, container("worker", command=None))


def ports(made: JobBuilder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made.objects()["Service/train-head-svc"].manifest["spec"]["ports"]
    return found


def leads_to(pod_containers: list[dict[str, Any]], target: str | int) -> int | None:
    """Follow a targetPort as the endpoints controller does: the first container with a TCP port of that name counts."""
    if isinstance(target, int):
        return target
    for found in pod_containers:
        for port in found.get("ports") or ():
            if port.get("name") == target and port.get("protocol", "TCP") == "TCP":
                return int(port["containerPort"])
    return None


def test_head_and_workers_start_ray() -> None:
    made = ray("--port=1", "--dashboardPort=2", "--clientPort=3")
    assert made.pod("head").containers[0]["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=1 --dashboard-port=2 --ray-client-server-port=3",
    ]
    assert made.pod("worker").containers[0]["command"] == [
        "sh",
        "-c",
        "ray start --block --address=train-head-0.train:1",
    ]


@pytest.mark.parametrize("flag", ["clientPort", "clientServerPort"])
def test_the_client_port_has_two_names(flag: str) -> None:
    made = ray(f"--{flag}=10002")
    assert made.messages() == []
    assert ports(made)[2] == {"name": "client-server", "port": 10002, "protocol": "TCP", "targetPort": "client-server"}


def test_a_command_of_the_user_stays() -> None:
    own = ["sh", "-c", "ray start --head --block --num-cpus=0"]
    made = ray(command=own)
    found = made.pod("head").containers[0]
    assert found["command"] == own
    assert found["ports"] == OWN_PORTS


def test_args_without_a_command_stay_and_are_named() -> None:
    pod = ray(args=["--verbose"]).pod("head")
    assert pod.containers[0]["command"][:2] == ["sh", "-c"]
    assert pod.containers[0]["args"] == ["--verbose"]
    assert ["has args but no command" in note.message for note in pod.notes] == [True]


def test_other_containers_and_tasks_are_left_alone() -> None:
    made = job().plugin("ray").task("head", 1, container("log"), head()).task("worker", 1).task("driver", 1, head())
    assert "ports" not in made.pod("head").containers[0]
    assert made.pod("head").containers[1]["ports"] == OWN_PORTS
    assert made.pod("driver").containers[0]["command"] is None
    assert made.pod("worker").containers[0]["command"] == container()["command"]


def test_the_service_selects_the_head() -> None:
    made = ray().plugin("ray", "--head=head")
    assert made.objects()["Service/train-head-svc"].manifest["spec"]["selector"] == {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/task-spec": "head",
    }


@pytest.mark.parametrize(
    ("declared", "targets"),
    [
        pytest.param([], ["gcs", "dashboard", "client-server"], id="nothing declared"),
        pytest.param(OWN_PORTS, ["gcs", "dashboard", "client-server"], id="all declared as ours"),
        pytest.param(
            [{"name": "redis", "containerPort": 6379}], ["redis", "dashboard", "client-server"], id="another name"
        ),
        pytest.param([{"containerPort": 6379}], [6379, "dashboard", "client-server"], id="no name"),
        pytest.param(
            [{"name": "dashboard", "containerPort": 9999}],
            ["gcs", 8265, "client-server"],
            id="our name for another number",
        ),
        pytest.param(
            [{"name": "gcs", "containerPort": 8265}], [6379, "gcs", "client-server"], id="our name for another of ours"
        ),
        pytest.param(
            [{"name": "gcs", "containerPort": 6379, "protocol": "UDP"}],
            [6379, "dashboard", "client-server"],
            id="UDP only",
        ),
    ],
)
def test_the_service_leads_to_the_head_whatever_the_ports_are_called(
    declared: list[dict[str, Any]], targets: list[str | int]
) -> None:
    made = ray(ports=declared)
    assert [port["targetPort"] for port in ports(made)] == targets
    containers = made.pod("head").containers
    assert [leads_to(containers, port["targetPort"]) for port in ports(made)] == [6379, 8265, 10001]
    names = [port["name"] for port in containers[0]["ports"] if "name" in port]
    assert len(names) == len(set(names))


def test_a_port_name_in_an_earlier_container_does_not_mislead_the_service() -> None:
    side = container("side", ports=[{"name": "gcs", "containerPort": 1}])
    made = job().plugin("ray").task("head", 1, side, head())
    assert [leads_to(made.pod("head").containers, port["targetPort"]) for port in ports(made)] == [6379, 8265, 10001]


def test_one_number_for_two_ports_is_served_once_and_named() -> None:
    made = ray("--dashboardPort=6379")
    assert [port["port"] for port in ports(made)] == [6379, 10001]
    assert any("port 6379 is given to 2 of" in text for text in made.messages())


def test_a_missing_head_is_a_problem() -> None:
    assert job().plugin("ray").task("worker", 1).problems() == [
        "ray: no task is named head; name the head task with --head"
    ]


def test_a_head_alone_is_fine() -> None:
    made = job().plugin("ray").task("head", 1, head())
    assert made.problems() == made.messages() == []


def test_a_missing_container_is_named() -> None:
    made = job().plugin("ray").task("head", 1, container("main"))
    assert any(
        "task head has no container named head" in text and "--headContainer" in text for text in made.messages()
    )
    assert [port["targetPort"] for port in ports(made)] == [6379, 8265, 10001]


def test_several_heads_are_named() -> None:
    assert any("2 replicas" in text for text in job().plugin("ray").task("head", 2, head()).messages())


@pytest.mark.parametrize(("length", "problems"), [(54, 0), (55, 1)])
def test_the_name_of_the_service_must_fit(length: int, problems: int) -> None:
    assert len(job("a" * length).plugin("ray").task("head", 1, head()).problems()) == problems

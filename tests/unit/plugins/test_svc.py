"""svc: names, lists of hosts, and what happens at the limits."""

from typing import Any

import pytest

from vcjob.plugins.hosts import ENV_ENTRY_MAX, OBJECT_DATA_MAX

from .builders import JobBuilder, container, job

SELECTOR = {"volcano.sh/job-name": "train", "volcano.sh/job-namespace": "ns"}


def data(made: JobBuilder) -> dict[str, str]:
    found: dict[str, str] = made.objects()["ConfigMap/train-svc"].manifest["data"]
    return found


def names(made: JobBuilder, task: str) -> list[str]:
    return [entry["name"] for entry in made.pod(task).containers[0].get("env", ())]


def test_the_hosts_of_every_task_are_listed() -> None:
    assert data(job().plugin("svc").task("ps", 1).task("gpu-worker", 2)) == {
        "ps.host": "train-ps-0.train",
        "VC_PS_HOSTS": "train-ps-0.train",
        "VC_PS_NUM": "1",
        "gpu_worker.host": "train-gpu-worker-0.train\ntrain-gpu-worker-1.train",
        "VC_GPU_WORKER_HOSTS": "train-gpu-worker-0.train,train-gpu-worker-1.train",
        "VC_GPU_WORKER_NUM": "2",
    }


def test_a_task_without_replicas_is_listed_empty() -> None:
    assert data(job().plugin("svc").task("w", 0)) == {"w.host": "", "VC_W_HOSTS": "", "VC_W_NUM": "0"}


def test_the_lists_follow_the_spec_and_the_other_objects_stay() -> None:
    objects = job().plugin("svc").task("w", 1).objects()
    assert objects["ConfigMap/train-svc"].follow == (("data",),)
    assert objects["Service/train"].follow == objects["NetworkPolicy/train"].follow == ()


def test_env_comes_from_the_config_map() -> None:
    made = job().plugin("svc").task("ps", 1).task("w", 2)
    entries = made.pod("ps").containers[0]["env"]
    assert [entry["name"] for entry in entries] == ["VC_PS_HOSTS", "VC_PS_NUM", "VC_W_HOSTS", "VC_W_NUM"]
    assert entries[0]["valueFrom"] == {"configMapKeyRef": {"name": "train-svc", "key": "VC_PS_HOSTS"}}
    assert all(entry["name"] in data(made) for entry in entries)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ("train-w-1", "train"), id="from Pod and Job"),
        pytest.param({"hostname": "box"}, ("box", "train"), id="own hostname"),
        pytest.param({"subdomain": "net"}, ("train-w-1", "net"), id="own subdomain"),
    ],
)
def test_hostname_and_subdomain(spec: dict[str, str], expected: tuple[str, str]) -> None:
    pod = job().plugin("svc").task("w", 2, **spec).pod("w", 1)
    assert (pod.spec["hostname"], pod.spec["subdomain"]) == expected


@pytest.mark.parametrize(
    ("argument", "service", "kinds"),
    [
        pytest.param("", {}, {"ConfigMap", "Service", "NetworkPolicy"}, id="defaults"),
        pytest.param(
            "--publish-not-ready-addresses",
            {"publishNotReadyAddresses": True},
            {"ConfigMap", "Service", "NetworkPolicy"},
            id="publish",
        ),
        pytest.param("--disable-network-policy=true", {}, {"ConfigMap", "Service"}, id="no policy"),
    ],
)
def test_objects_follow_the_arguments(argument: str, service: dict[str, Any], kinds: set[str]) -> None:
    objects = job().plugin("svc", *filter(None, [argument])).task("w", 1).objects()
    assert {wanted.ref.kind for wanted in objects.values()} == kinds
    assert objects["Service/train"].manifest["spec"] == {"clusterIP": "None", "selector": SELECTOR, **service}


def test_without_hosts_env_the_files_are_still_mounted() -> None:
    pod = job().plugin("svc", "--inject-hosts-env=false").task("w", 1).pod("w")
    assert pod.containers[0].get("env", []) == []
    assert pod.containers[0]["volumeMounts"] == [{"name": "train-svc", "mountPath": "/etc/volcano"}]


def test_two_thousand_replicas_fit_everywhere() -> None:
    made = job().plugin("svc").task("master", 1).task("worker", 2000)
    assert made.messages() == []
    assert len(data(made)["worker.host"].splitlines()) == 2000
    assert "VC_WORKER_HOSTS" in names(made, "master")


def test_a_list_too_long_for_a_variable_is_left_to_the_file() -> None:
    made = job().plugin("svc").task("master", 1).task("worker", 6000)
    assert names(made, "master") == ["VC_MASTER_HOSTS", "VC_MASTER_NUM", "VC_WORKER_NUM"]
    assert len(data(made)["VC_WORKER_HOSTS"]) > ENV_ENTRY_MAX
    assert [
        text for text in made.messages() if "variable VC_WORKER_HOSTS" in text and "/etc/volcano/worker.host" in text
    ]


def test_beyond_a_megabyte_the_repeated_lists_go_first() -> None:
    made = job().plugin("svc").task("master", 1).task("worker", 25_000)
    found = data(made)
    assert sum(map(len, found.values())) <= OBJECT_DATA_MAX
    assert sorted(found) == ["VC_MASTER_HOSTS", "VC_MASTER_NUM", "VC_WORKER_NUM", "master.host", "worker.host"]
    assert names(made, "master") == ["VC_MASTER_HOSTS", "VC_MASTER_NUM", "VC_WORKER_NUM"]
    assert any("key VC_WORKER_HOSTS of the ConfigMap" in text for text in made.messages())


def test_far_beyond_a_megabyte_the_longest_files_go_too() -> None:
    made = job().plugin("svc").task("master", 1).task("worker", 60_000)
    assert sorted(data(made)) == ["VC_MASTER_NUM", "VC_WORKER_NUM", "master.host"]
    assert names(made, "master") == ["VC_MASTER_NUM", "VC_WORKER_NUM"]
    assert any("key worker.host of the ConfigMap" in text and "ask DNS" in text for text in made.messages())


def test_many_middling_lists_are_cut_only_as_far_as_needed() -> None:
    made = job().plugin("svc")
    for number in range(12):
        made = made.task(f"w{number}", 2500)
    found = data(made)
    assert sum(map(len, found.values())) <= OBJECT_DATA_MAX
    assert sum(key.endswith(".host") for key in found) == 12
    assert any(key.endswith("_HOSTS") for key in found)
    assert all(name in found for name in names(made, "w0"))


@pytest.mark.parametrize(
    ("name", "task", "fragment"),
    [
        pytest.param("my.job", "w", "cannot be the name of a Service", id="a dot"),
        pytest.param("1train", "w", "cannot be the name of a Service", id="a digit first"),
        pytest.param("a" * 64, "w", "cannot be the name of a Service", id="64 characters"),
        pytest.param("a" * 50, "b" * 12, "has 65 characters, 63 at most", id="hostname"),
    ],
)
def test_names_that_can_never_work_are_problems(name: str, task: str, fragment: str) -> None:
    assert any(fragment in text for text in job(name).plugin("svc").task(task, 1).problems())


def test_names_at_the_limit_work() -> None:
    made = job("a" * 59).plugin("svc").task("w", 10)
    assert made.problems() == []
    assert len(made.pod("w", 9).spec["hostname"]) == 63
    assert len(made.pod("w", 9).spec["volumes"][0]["name"]) == 63
    assert job("a" * 59).plugin("svc").task("w", 11).problems() != []


def test_templates_may_share_a_container_name() -> None:
    made = job().plugin("svc").task("a", 1, container("main")).task("b", 1, container("main"))
    assert names(made, "a") == names(made, "b")

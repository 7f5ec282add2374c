"""The corners of the plugins, on the real API server: all Jobs are applied at once, and each is looked at."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.integration.conftest import Standing
from tests.integration.harness.api import CONFIG_MAPS, JOBS, SECRETS, SERVICES, Api, Object
from tests.integration.harness.jobs import env_of, in_phase, job, pods_of, pods_when, task

LONG = "j" * 45  # with "-worker-0" a hostname of 54 characters, and "-head-svc" a Service of 54
LONGEST = "n" * 59  # with "-a-0" a hostname of 63 characters, and "-svc" a volume of 63
pytestmark = pytest.mark.xdist_group("corners")


def container(name: str = "main", **fields: Any) -> Object:
    return {"name": name, "image": "busybox:1.36", **fields}


def with_env(**env: str) -> Object:
    return container(env=[{"name": key, "value": value} for key, value in env.items()])


CORNERS: dict[str, tuple[Object, int]] = {
    "mpi-master-only": (job("mpi-master-only", task("master"), plugins={"mpi": []}), 1),
    "pytorch-master-only": (job("pytorch-master-only", task("master"), plugins={"pytorch": []}), 1),
    "zero": (job("zero", task("master"), task("worker", 0), plugins={"pytorch": [], "mpi": []}, minAvailable=1), 1),
    "masters": (job("masters", task("master", 2), task("worker", 2), plugins={"pytorch": [], "hcclrank": []}), 4),
    "side": (
        job("side", *map(task, ("master", "worker", "board")), plugins={"pytorch": [], "tensorflow": [], "mpi": []}),
        3,
    ),
    "inits": (
        job(
            "inits",
            task(
                "w",
                pod={
                    "initContainers": [container("first"), container("side", restartPolicy="Always")],
                    "containers": [container(), container("second")],
                },
            ),
            plugins={"env": [], "svc": [], "ssh": []},
        ),
        1,
    ),
    "own": (
        job(
            "own",
            task(
                "w",
                containers=[
                    container(
                        env=[{"name": "VC_TASK_INDEX", "value": "mine"}],
                        ports=[{"containerPort": 22, "name": "mine"}],
                        volumeMounts=[{"name": "scratch", "mountPath": "/etc/volcano"}],
                    )
                ],
                pod={
                    "hostname": "my-host",
                    "subdomain": "my-domain",
                    "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "own-ssh", "emptyDir": {}}],
                },
            ),
            task("master"),
            plugins={"env": [], "svc": [], "ssh": [], "mpi": ["--worker=w"]},
        ),
        2,
    ),
    "ray-port": (
        job(
            "ray-port",
            task("head", containers=[container("head", ports=[{"containerPort": 6379, "name": "redis"}])]),
            task("worker", containers=[container("worker")]),
            plugins={"ray": []},
        ),
        2,
    ),
    "ray-command": (
        job(
            "ray-command",
            task("head", containers=[container("head", command=["my", "head"]), container("log")]),
            task("worker", 2, containers=[container("worker", command=["my", "worker"])]),
            plugins={"ray": ["--clientServerPort=10002"]},
        ),
        3,
    ),
    "dashes": (job("dashes", task("gpu-worker-a", 2), plugins={"svc": [], "env": []}), 2),
    LONG: (
        job(
            LONG,
            task("head", containers=[container("head")]),
            task("worker", containers=[container("worker")]),
            plugins={"svc": [], "ssh": [], "ray": []},
        ),
        2,
    ),
    LONGEST: (job(LONGEST, task("a"), plugins={"svc": [], "ssh": []}), 1),
    "shared": (
        job(
            "shared",
            task("a", containers=[container("x")]),
            task("b", containers=[container("x")]),
            plugins={"mpi": ["--master=a", "--worker=b"]},
        ),
        2,
    ),
}


@pytest.fixture(scope="module")
async def corners(standing: Standing, api: Api) -> AsyncIterator[dict[str, dict[str, Object]]]:
    """The Pods of every corner's Job, by their task and index."""
    for body, _ in CORNERS.values():
        await api.create(JOBS, body, standing.namespace)
    found: dict[str, dict[str, Object]] = {}
    for name, (_, count) in CORNERS.items():
        pods = await pods_when(api, name, standing.namespace, count=count)
        found[name] = {pod.removeprefix(f"{name}-"): content for pod, content in pods.items()}
        await in_phase(api, name, standing.namespace, "Pending")
    yield found


Corners = dict[str, dict[str, Object]]


def ports(pod: Object, container: int = 0) -> dict[int, str | None]:
    return {p["containerPort"]: p.get("name") for p in pod["spec"]["containers"][container].get("ports", ())}


def mounts(container: Object) -> dict[str, str]:
    return {m["mountPath"]: m["name"] for m in container["volumeMounts"] if "serviceaccount" not in m["mountPath"]}


def test_a_master_alone_needs_no_workers(corners: Corners):
    assert "MPI_HOST" not in env_of(corners["mpi-master-only"]["master-0"])
    env = env_of(corners["pytorch-master-only"]["master-0"])
    expected = {
        "MASTER_ADDR": "pytorch-master-only-master-0.pytorch-master-only",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "1",
        "RANK": "0",
    }
    assert {key: env[key] for key in expected} == expected


def test_a_task_may_have_no_replicas(corners: Corners):
    env = env_of(corners["zero"]["master-0"])
    assert (env["WORLD_SIZE"], env["RANK"], env["MPI_HOST"]) == ("1", "0", "")


def test_ranks_go_through_the_masters_first(corners: Corners):
    pods = corners["masters"]
    ranks = {name: env_of(pod)["RANK"] for name, pod in pods.items()}
    assert ranks == {"master-0": "0", "master-1": "1", "worker-0": "2", "worker-1": "3"}
    assert {name: pod["metadata"]["annotations"]["hccl/rankIndex"] for name, pod in pods.items()} == ranks
    assert {env_of(pod)["MASTER_ADDR"] for pod in pods.values()} == {"masters-master-0.masters"}


def test_a_side_task_sees_the_others_and_has_no_rank(corners: Corners):
    env = env_of(corners["side"]["board-0"])
    assert "RANK" not in env
    assert env["WORLD_SIZE"] == "2"
    config = json.loads(env["TF_CONFIG"])
    assert config == {"cluster": {"worker": ["side-worker-0.side:2222"]}, "task": {"type": "board", "index": 0}}
    assert "MPI_HOST" not in env


def test_init_containers_and_sidecars_see_the_same(corners: Corners):
    spec = corners["inits"]["w-0"]["spec"]
    every = [*spec["initContainers"], *spec["containers"]]
    assert len(every) == 4
    for each in every:
        assert {"VC_TASK_INDEX", "VC_W_HOSTS"} <= {entry["name"] for entry in each["env"]}
        assert mounts(each) == {"/etc/volcano": "inits-svc", "/root/.ssh": "inits-ssh"}


async def test_what_the_user_has_set_stays(corners: Corners, standing: Standing, api: Api):
    pod = corners["own"]["w-0"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("my-host", "my-domain")
    assert [e["value"] for e in pod["spec"]["containers"][0]["env"] if e["name"] == "VC_TASK_INDEX"] == ["mine", "0"]
    assert ports(pod) == {22: "mine"}
    assert mounts(pod["spec"]["containers"][0])["/etc/volcano"] == "scratch"
    volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
    assert "emptyDir" in volumes["own-ssh"]
    hosts = await api.get(CONFIG_MAPS, "own-svc", standing.namespace)
    assert hosts["data"]["w.host"] == "my-host.my-domain"
    assert env_of(corners["own"]["master-0"])["MPI_HOST"] == "my-host.my-domain"


async def test_a_service_leads_to_a_port_of_another_name(corners: Corners, standing: Standing, api: Api):
    assert ports(corners["ray-port"]["head-0"]) == {6379: "redis", 8265: "dashboard", 10001: "client-server"}
    service = await api.get(SERVICES, "ray-port-head-svc", standing.namespace)
    targets = {p["name"]: (p["port"], p["targetPort"]) for p in service["spec"]["ports"]}
    assert targets["gcs"] == (6379, "redis")
    labels = corners["ray-port"]["head-0"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    worker = corners["ray-port"]["worker-0"]
    assert not service["spec"]["selector"].items() <= worker["metadata"]["labels"].items()
    assert worker["spec"]["containers"][0]["command"][-1].endswith("--address=ray-port-head-0.ray-port:6379")


def test_a_command_of_the_user_is_not_replaced(corners: Corners):
    head, worker = corners["ray-command"]["head-0"], corners["ray-command"]["worker-1"]
    assert head["spec"]["containers"][0]["command"] == ["my", "head"]
    assert worker["spec"]["containers"][0]["command"] == ["my", "worker"]
    assert "command" not in head["spec"]["containers"][1]
    assert ports(head) == {6379: "gcs", 8265: "dashboard", 10002: "client-server"}
    assert ports(head, 1) == {}


async def test_dashes_become_underscores(corners: Corners, standing: Standing, api: Api):
    env = env_of(corners["dashes"]["gpu-worker-a-1"])
    assert env["VC_GPU_WORKER_A_NUM"] == "configMapKeyRef/dashes-svc/VC_GPU_WORKER_A_NUM"
    hosts = await api.get(CONFIG_MAPS, "dashes-svc", standing.namespace)
    assert "gpu_worker_a.host" in hosts["data"]


async def test_names_at_the_limit(corners: Corners, standing: Standing, api: Api):
    for kind, name in ((SERVICES, LONG), (SERVICES, f"{LONG}-head-svc"), (CONFIG_MAPS, f"{LONG}-svc")):
        assert await api.get(kind, name, standing.namespace)
    assert len(corners[LONGEST]["a-0"]["spec"]["hostname"]) == 63
    assert await api.get(SECRETS, f"{LONGEST}-ssh", standing.namespace)
    await api.create(JOBS, job(f"{LONGEST}n", task("a"), plugins={"svc": []}), standing.namespace)
    failed = await in_phase(api, f"{LONGEST}n", standing.namespace, "Failed")
    assert "63" in failed["status"]["state"]["message"]


def test_containers_of_one_name_in_two_tasks_are_told_apart(corners: Corners):
    assert env_of(corners["shared"]["a-0"])["MPI_HOST"] == "shared-b-0.shared"
    assert "MPI_HOST" not in env_of(corners["shared"]["b-0"])
    assert ports(corners["shared"]["b-0"]) == {22: "mpijob-port"}


async def test_a_job_of_no_pods_at_all_runs_without_harm(standing: Standing, api: Api):
    await api.create(JOBS, job("empty", task("w", 0), plugins={"svc": [], "ssh": []}), standing.namespace)
    await in_phase(api, "empty", standing.namespace, "Running")
    assert await pods_of(api, "empty", standing.namespace) == {}
    hosts = await api.get(CONFIG_MAPS, "empty-svc", standing.namespace)
    assert hosts["data"] == {"VC_W_HOSTS": "", "VC_W_NUM": "0", "w.host": ""}

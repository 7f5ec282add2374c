"""Every Job of examples/, applied as it is written but for images and resources, and looked at from inside its Pods."""

import json
from functools import partial

import pytest
from tests.e2e.harness.examples import EXAMPLES, read_example
from tests.e2e.harness.kubectl import Kubectl, wait_for

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("e2e_image")]

TESTED = {
    "job-plugin.yaml",
    "lm-mpi-job.yaml",
    "mpi.yaml",
    "plugin-env.yaml",
    "plugin-hcclrank.yaml",
    "plugin-mpi.yaml",
    "plugin-pytorch.yaml",
    "plugin-ray.yaml",
    "plugin-ssh.yaml",
    "plugin-svc.yaml",
    "plugin-tensorflow.yaml",
    "pytorch.yaml",
    "ray-cluster-job.yaml",
    "tensorflow-dist-mnist-env.yaml",
    "tensorflow-dist-mnist-svc.yaml",
    "tensorflow-dist-mnist.yaml",
    "tensorflow-training.yaml",
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == TESTED


def start(kubectl: Kubectl, example: str) -> str:
    """Apply an example; return the name of its Job."""
    job = read_example(example)
    kubectl.apply(job)
    return str(job["metadata"]["name"])


def finish(kubectl: Kubectl, job: str, *, patience_s: float = 180) -> dict[str, str]:
    """Wait for the end of a Job, which must be a good one; return the logs of its Pods."""
    ended = kubectl.wait_for_phase(job, "Completed", "Failed", "Aborted", "Terminated", patience_s=patience_s)
    assert ended["status"]["state"]["phase"] == "Completed", kubectl.describe(job)
    return {pod: kubectl("logs", pod) for pod in kubectl.pods(job)}


def test_job_plugin_gives_env_hosts_and_keys(kubectl: Kubectl) -> None:
    job = start(kubectl, "job-plugin.yaml")
    kubectl.wait_for_pods(job, "Running", count=3)
    hosts = [f"{job}-default-nginx-{i}.{job}" for i in range(3)]
    for index in range(3):
        pod = f"{job}-default-nginx-{index}"
        env = dict(line.split("=", 1) for line in kubectl.execute(pod, "env").splitlines() if "=" in line)
        assert env["VC_TASK_INDEX"] == env["VK_TASK_INDEX"] == str(index)
        assert env["VC_DEFAULT_NGINX_HOSTS"] == ",".join(hosts)
        assert env["VC_DEFAULT_NGINX_NUM"] == "3"
        assert kubectl.execute(pod, "hostname").strip() == pod
    pod = f"{job}-default-nginx-0"
    assert kubectl.execute(pod, "cat /etc/volcano/default_nginx.host").split() == hosts
    files = "VC_DEFAULT_NGINX_HOSTS VC_DEFAULT_NGINX_NUM default_nginx.host"
    assert kubectl.execute(pod, "ls /etc/volcano").split() == sorted(files.split())
    keys = kubectl.execute(pod, "ls /home/user/.ssh")
    assert keys.split() == ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]
    assert f"Host {job}-default-nginx-2" in kubectl.execute(pod, "cat /home/user/.ssh/config")


def test_job_plugin_lets_its_pods_find_and_reach_each_other(kubectl: Kubectl) -> None:
    job = start(kubectl, "job-plugin.yaml")
    pods = kubectl.wait_for_pods(job, "Running", count=3)
    first = f"{job}-default-nginx-0"

    def ask(*command: str) -> str:
        answer = kubectl.attempt("exec", first, "--", *command)
        return answer.out + answer.err

    for index in range(3):
        name, address = f"{job}-default-nginx-{index}.{job}", pods[f"{job}-default-nginx-{index}"]["status"]["podIP"]
        wait_for(f"{name} to have an address", partial(lambda n, a: a in ask("getent", "hosts", n), name, address))
        get = f"import urllib.request as r; print(r.urlopen('http://{name}/', timeout=5).status)"
        assert ask("python3", "-c", get).strip() == "200"


def test_job_plugin_makes_a_network_policy_for_its_own_pods(kubectl: Kubectl) -> None:
    job = start(kubectl, "job-plugin.yaml")
    kubectl.wait_for_pods(job, "Running", count=3)
    policy = kubectl.get("networkpolicy", job)
    own = {"matchLabels": {"volcano.sh/job-name": job, "volcano.sh/job-namespace": kubectl.namespace}}
    assert policy["spec"] == {
        "podSelector": own,
        "ingress": [{"from": [{"podSelector": own}]}],
        "policyTypes": ["Ingress"],
    }
    service = kubectl.get("service", job)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == own["matchLabels"]


@pytest.mark.parametrize(
    "example", ["tensorflow-dist-mnist.yaml", "tensorflow-dist-mnist-svc.yaml", "tensorflow-dist-mnist-env.yaml"]
)
def test_tensorflow_by_hand_completes_when_its_workers_do(kubectl: Kubectl, example: str) -> None:
    job = start(kubectl, example)
    logs = finish(kubectl, job)
    for index in range(2):
        log = logs[f"{job}-worker-{index}"]
        config = json.loads(log.splitlines()[0].removeprefix("TF_CONFIG "))
        assert config["cluster"]["worker"] == [f"{job}-worker-{i}.{job}:2222" for i in range(2)]
        assert config["task"] == {"type": "worker", "index": index}
        assert f"reached {job}-ps-0.{job}:2222" in log


def test_tensorflow_training_gets_its_cluster(kubectl: Kubectl) -> None:
    job = start(kubectl, "tensorflow-training.yaml")
    logs = finish(kubectl, job)
    assert len(logs) == 5
    assert "'type': 'ps', 'index': 1" in logs[f"{job}-ps-1"]
    assert f"{job}-worker-2.{job}:2222" in logs[f"{job}-worker-0"]


def test_pytorch_ranks_meet(kubectl: Kubectl) -> None:
    job = start(kubectl, "pytorch.yaml")
    kubectl.wait_for_phase(job, "Completed", patience_s=180)
    log = kubectl("logs", f"{job}-master-0")
    assert f"MASTER_ADDR: {job}-master-0.{job}" in log
    assert "WORLD_SIZE: 3" in log
    assert "Initialized process group, rank: 0" in log


def test_mpi_by_hand_runs_on_both_workers(kubectl: Kubectl) -> None:
    job = start(kubectl, "mpi.yaml")
    kubectl.wait_for_pods(job, "Succeeded", count=1, patience_s=180)
    log = kubectl("logs", f"{job}-mpimaster-0")
    for index in range(2):
        assert f"rank {index} on {job}-mpiworker-{index}: the sum of all ranks is 1" in log


def test_mpi_plugin_runs_on_both_workers(kubectl: Kubectl) -> None:
    job = start(kubectl, "lm-mpi-job.yaml")
    kubectl.wait_for_phase(job, "Completed", patience_s=180)
    log = kubectl("logs", f"{job}-mpimaster-0")
    assert f"MPI_HOST: {job}-mpiworker-0.{job},{job}-mpiworker-1.{job}" in log
    for index in range(2):
        assert f"Hello world from processor {job}-mpiworker-{index}, rank {index} out of 2 processors" in log


def test_the_master_logs_in_to_every_host_of_mpi_host(kubectl: Kubectl) -> None:
    example = read_example("lm-mpi-job.yaml")
    master = example["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    master["command"] = ["sleep", "infinity"]  # so that there is a shell to look around from
    kubectl.apply(example)
    kubectl.wait_for_pods("lm-mpi-job", "Running", count=3)
    said = wait_for(
        "ssh to every worker",
        lambda: (
            (
                answer := kubectl.attempt(
                    "exec",
                    "lm-mpi-job-mpimaster-0",
                    "--",
                    "sh",
                    "-c",
                    "for h in $(echo $MPI_HOST | tr , ' '); do ssh $h hostname; done",
                )
            ).code
            == 0
            and answer.out.split()
        ),
    )
    assert said == ["lm-mpi-job-mpiworker-0", "lm-mpi-job-mpiworker-1"]
    assert kubectl.execute(
        "lm-mpi-job-mpimaster-0", "ssh lm-mpi-job-mpiworker-1 cat /etc/volcano/mpimaster.host"
    ).strip() == ("lm-mpi-job-mpimaster-0.lm-mpi-job")


def test_ray_starts_itself(kubectl: Kubectl) -> None:
    job = start(kubectl, "ray-cluster-job.yaml")
    kubectl.wait_for_pods(job, "Running", count=3)
    nodes = wait_for(
        "three nodes in the Ray cluster",
        lambda: (
            (answer := kubectl.attempt("exec", f"{job}-head-0", "--", "ray", "status")).out.count(" node_") == 3
            and answer.out
        ),
        patience_s=180,
        tell=lambda: str(kubectl.attempt("exec", f"{job}-head-0", "--", "ray", "status")),
    )
    assert "Active:" in nodes
    ports = {port["name"]: port["port"] for port in kubectl.get("service", f"{job}-head-svc")["spec"]["ports"]}
    assert ports == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}


def test_env_demo_numbers_its_slices(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-env.yaml"))
    for index in range(2):
        assert logs[f"env-demo-shard-{index}"].splitlines()[-1] == f"slice {index} of 10"


def test_svc_demo_answers_by_name(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-svc.yaml"))
    assert "svc-demo-web-0.svc-demo" in logs["svc-demo-gpu-worker-0"]


def test_ssh_demo_shows_its_keys_to_an_ordinary_user(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-ssh.yaml"))
    assert "Port 2222" in logs["ssh-demo-node-0"]
    assert "id_rsa" in logs["ssh-demo-node-0"]


def test_tf_demo_prints_its_cluster(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-tensorflow.yaml"))
    config = json.loads(logs["tf-demo-gpu-node-1"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["chief"] == ["tf-demo-chief-0.tf-demo:5000"]


def test_pytorch_demo_lets_its_workers_wait_for_the_master(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-pytorch.yaml"))
    ranks = {pod: log.split("\nRANK=")[1].split()[0] if "\nRANK=" in log else log for pod, log in logs.items()}
    assert sorted(ranks.values()) == ["0", "1", "2", "3"]


def test_mpi_demo_uses_its_own_port(kubectl: Kubectl) -> None:
    start(kubectl, "plugin-mpi.yaml")
    kubectl.wait_for_phase("mpi-demo", "Completed", patience_s=180)
    assert "rank 1 out of 2 processors" in kubectl("logs", "mpi-demo-master-0")


def test_hccl_demo_reads_its_rank(kubectl: Kubectl) -> None:
    logs = finish(kubectl, start(kubectl, "plugin-hcclrank.yaml"))
    assert sorted(log.strip() for log in logs.values()) == ["rank 0", "rank 1", "rank 2"]


def test_ray_demo_has_a_head_of_its_own(kubectl: Kubectl) -> None:
    start(kubectl, "plugin-ray.yaml")
    kubectl.wait_for_pods("ray-demo", "Running", count=2)
    wait_for(
        "two nodes in the Ray cluster",
        lambda: kubectl.attempt("exec", "ray-demo-head-0", "--", "ray", "status").out.count(" node_") == 2,
        patience_s=180,
    )

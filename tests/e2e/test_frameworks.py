"""The real frameworks on real Pods: the reason why people use these Jobs."""

from typing import Any

import pytest
from tests.e2e.harness.examples import read_example
from tests.e2e.harness.kubectl import Kubectl

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("e2e_image"), pytest.mark.timeout(420)]

PATIENCE_S = 360  # importing TensorFlow or Ray on two shared cores takes its time


def run(kubectl: Kubectl, framework: str) -> dict[str, str]:
    """Apply an example, wait for its good end, and return the logs of its Pods."""
    job: dict[str, Any] = read_example(f"frameworks/{framework}.yaml")
    name = job["metadata"]["name"]
    kubectl.apply(job)
    ended = kubectl.wait_for_phase(name, "Completed", "Failed", "Aborted", "Terminated", patience_s=PATIENCE_S)
    logs = {pod: kubectl.attempt("logs", pod).out for pod in kubectl.pods(name)}
    assert ended["status"]["state"]["phase"] == "Completed", f"{kubectl.describe(name)}\n{logs}"
    return logs


def test_three_ranks_of_pytorch_all_reduce(kubectl: Kubectl) -> None:
    logs = run(kubectl, "pytorch")
    assert "rank 0 of 3: the sum is 6" in logs["pytorch-allreduce-master-0"]
    assert "rank 1 of 3: the sum is 6" in logs["pytorch-allreduce-worker-0"]
    assert "rank 2 of 3: the sum is 6" in logs["pytorch-allreduce-worker-1"]


def test_mpirun_starts_a_rank_on_every_worker(kubectl: Kubectl) -> None:
    log = run(kubectl, "mpi")["mpi-hello-master-0"]
    for rank in range(2):
        assert f"rank {rank} of 2 on mpi-hello-worker-{rank}: the sum is 3" in log


def test_ray_runs_a_task_on_the_head_and_on_every_worker(kubectl: Kubectl) -> None:
    log = run(kubectl, "ray")["ray-tour-driver-0"]
    assert "ran on ray-tour-head-0 ray-tour-worker-0 ray-tour-worker-1" in log


def test_two_workers_of_tensorflow_mirror_one_model(kubectl: Kubectl) -> None:
    logs = run(kubectl, "tensorflow")
    for rank in range(2):
        assert f"worker {rank} of 2: the weight is 0.500" in logs[f"tensorflow-mirrored-worker-{rank}"]

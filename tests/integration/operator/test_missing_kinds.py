"""A cluster without the CRDs: the operator waits, says so, and goes on when they appear."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.harness.api import JOBS, QUEUES, Api, Refused, eventually
from tests.integration.harness.control_plane import ControlPlane, running_cluster
from tests.integration.harness.jobs import in_phase, job, play, pods_when, state_when, task
from tests.integration.harness.kubectl import Kubectl
from tests.integration.harness.operator import OperatorProcess

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.paths import project_file
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import KUBECTL

pytestmark = pytest.mark.xdist_group("missing-kinds")  # one such cluster is enough


@pytest.fixture(scope="module")
def bare_plane(cluster_home: Path) -> Iterator[ControlPlane]:
    with running_cluster("bare", home=cluster_home, flags=("--no-crds", "--audit-log")) as plane:
        yield plane


@pytest.fixture(scope="module")
async def bare(bare_plane: ControlPlane) -> AsyncIterator[Api]:
    async with Api.connected(bare_plane.admin_kubeconfig) as connected:
        yield connected


async def awaited(process: OperatorProcess, *kinds: str) -> bool:
    try:
        status, page = await process.get(f"{process.health_url}/readyz")
    except OSError:
        return False
    line = next(line for line in page.splitlines() if "kinds" in line)
    assert line == f"[-]kinds: waiting for the CRDs of {', '.join(kinds)} to be installed", page
    return status == 503


async def misses_jobs(process: OperatorProcess) -> bool:
    """Return whether /readyz names the Jobs as what the server has ceased to serve."""
    status, page = await process.get(f"{process.health_url}/readyz")
    line = "[-]server: /apis/batch.volcano.sh/v1alpha1/jobs: not served, is its CRD installed? (HTTP 404)"
    return status == 503 and line in page.splitlines()


async def test_missing_kinds_are_awaited(operator: StartOperator, bare_plane: ControlPlane, bare: Api):
    kubectl = Kubectl(
        find_binaries((KUBECTL,), say=Progress())[KUBECTL.name],
        kubeconfig=bare_plane.admin_kubeconfig,
        namespace="default",
    )
    crds = project_file("deploy/crds")
    assert crds is not None
    jobs, commands = "jobs.batch.volcano.sh", "commands.bus.volcano.sh"
    groups, queues = "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"

    # All namespaces, and all that Volcano's scheduler brings.
    process = await operator("--gang-scheduler", "volcano", kubeconfig=bare_plane.operator_kubeconfig, ready=False)
    await eventually(lambda: awaited(process, jobs, commands, groups, queues))
    assert "waiting for the CRDs of jobs.batch.volcano.sh" in process.last_lines()
    assert (await process.get(f"{process.health_url}/livez"))[0] == 200

    await kubectl("apply", "--server-side", "-f", str(crds / "jobs.batch.volcano.sh.yaml"))
    await eventually(lambda: awaited(process, commands, groups, queues))
    await kubectl("apply", "--server-side", "-f", str(crds))
    await process.wait_ready()

    await make_namespace(bare, name="anywhere")
    await bare.create(JOBS, job("early", task("w", 2)), "anywhere")
    await state_when(bare, "early", "anywhere", phase="Pending", reason="QueueNotFound")
    await bare.create(QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}} | kind("Queue"))
    await state_when(bare, "early", "anywhere", phase="Pending", reason="PodGroupPending")
    assert await process.stop() == 0

    # Without a gang scheduler the same Job needs no PodGroup.
    second = await operator(kubeconfig=bare_plane.operator_kubeconfig)
    await play(bare, (await pods_when(bare, "early", "anywhere", count=2)).values(), "Running")
    await in_phase(bare, "early", "anywhere", "Running")

    # The CRD of Jobs goes, and with it every Job: the operator says so, and goes on when it is back.
    await kubectl("delete", "crd", jobs, "--wait=false")
    await eventually(lambda: misses_jobs(second), timeout_s=60)
    assert (await second.get(f"{second.health_url}/livez"))[0] == 200
    await kubectl("apply", "--server-side", "-f", str(crds / "jobs.batch.volcano.sh.yaml"))

    async def create_late() -> bool:
        try:
            await bare.create(JOBS, job("late", task("w")), "anywhere")
        except Refused:
            return False
        return True

    await eventually(create_late)
    await pods_when(bare, "late", "anywhere", count=1, timeout_s=60)
    await second.wait_ready()
    assert "Traceback" not in second.last_lines(1000)


def kind(name: str) -> dict[str, str]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": name}

"""Fixtures of the integration tests: a real control plane, a namespace for each test, and the operator as a process."""

import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.api import NAMESPACES, QUEUES, Api, Refused
from tests.integration.harness.control_plane import ControlPlane, running_cluster
from tests.integration.harness.kubectl import Kubectl
from tests.integration.harness.operator import OperatorProcess

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import KUBECTL

_FAILED = pytest.StashKey[bool]()

StartOperator = Callable[..., Awaitable[OperatorProcess]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A namespace with an operator that stands by for many tests; each gives its Jobs names of their own."""

    namespace: str
    operator: OperatorProcess


def pytest_configure() -> None:
    """Hear SIGINT again: whoever is started in the background of a script ignores it, and so do its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Remember a failure, for fixtures to show their logs at their end."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        for found in getattr(item, "funcargs", {}).values():
            if isinstance(found, Standing):
                report.sections.append((f"operator of {found.namespace}", found.operator.last_lines()))
    return report


@pytest.fixture(scope="session")
def cluster_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VCJOB_CLUSTER_HOME apart from the user's own."""
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="session")
def control_plane(cluster_home: Path) -> Iterator[ControlPlane]:
    """A cluster with the CRDs, the operator's identity and an audit log; without nodes, so Pods stay Pending."""
    with running_cluster("shared", home=cluster_home, flags=("--audit-log",)) as plane:
        yield plane


@pytest.fixture(scope="session")
def fake_node_plane(cluster_home: Path) -> Iterator[ControlPlane]:
    """A cluster like `control_plane`, with fake nodes that run Pods."""
    with running_cluster("fake-nodes", home=cluster_home, flags=("--audit-log", "--nodes=2")) as plane:
        yield plane


@pytest.fixture(scope="session")
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """The API server of `control_plane`, seen by the administrator."""
    async with Api.connected(control_plane.admin_kubeconfig) as connected:
        yield connected


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """A fresh namespace, in which Pods can be made; it goes at the end of the test, without being waited for."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await make_namespace(api, name=name)
    yield name
    await api.delete(NAMESPACES, name)


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> Kubectl:
    """kubectl as the administrator, in the test's namespace."""
    program = find_binaries((KUBECTL,), say=Progress())[KUBECTL.name]
    return Kubectl(program, kubeconfig=control_plane.admin_kubeconfig, namespace=namespace)


@pytest.fixture
async def operator(
    control_plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[StartOperator]:
    """A function that starts an operator under its own identity: `await operator("--namespace", namespace)`.

    With `ready=False` it does not wait for /readyz; `kubeconfig=` and `env=` replace the defaults. The logs are shown
    when the test fails.
    """
    started: list[OperatorProcess] = []

    async def start(
        *flags: str, kubeconfig: Path | None = None, env: dict[str, str] | None = None, ready: bool = True
    ) -> OperatorProcess:
        process = OperatorProcess(
            kubeconfig=kubeconfig or control_plane.operator_kubeconfig,
            log=tmp_path / f"operator-{len(started)}.log",
            flags=flags,
            env=env or {},
        )
        started.append(process)
        await process.start(wait_ready=ready)
        return process

    yield start
    for process in started:
        await process.kill()
        if request.node.stash.get(_FAILED, False):
            print(f"--- {process.log.name}\n{process.last_lines()}")


@pytest.fixture(scope="session")
async def standing(
    control_plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Standing]:
    """An operator without a gang scheduler, for all tests of this process that need nothing else of it."""
    async with _standing(control_plane, api, folder=tmp_path_factory.mktemp("standing"), gang="none") as found:
        yield found


@pytest.fixture(scope="session")
async def standing_gang(
    control_plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Standing]:
    """An operator with PodGroups, which the tests admit; there is a Queue `default`."""
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    }
    try:
        await api.create(QUEUES, queue)
    except Refused as refused:
        if refused.code != 409:
            raise
    async with _standing(control_plane, api, folder=tmp_path_factory.mktemp("standing"), gang="volcano") as found:
        yield found


@asynccontextmanager
async def _standing(plane: ControlPlane, api: Api, *, folder: Path, gang: str) -> AsyncIterator[Standing]:
    namespace = f"standing-{gang}"
    await make_namespace(api, name=namespace)
    process = OperatorProcess(
        kubeconfig=plane.operator_kubeconfig,
        log=folder / f"operator-{gang}.log",
        flags=(f"--namespace={namespace}", f"--gang-scheduler={gang}"),
        env={},
    )
    await process.start()
    yield Standing(namespace=namespace, operator=process)
    await process.kill()


async def make_namespace(api: Api, *, name: str) -> None:
    """Create a namespace and the ServiceAccount that its Pods need, without waiting for the controller manager."""
    await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    try:
        await api.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", body=account)
    except Refused as refused:
        if refused.code != 409:
            raise

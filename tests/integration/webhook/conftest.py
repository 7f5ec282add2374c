"""A control plane with webhooks, for the tests of this folder.

It runs without the ServiceAccount plugin, as the one did on which tests/data/conformance was recorded.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.integration.harness.api import QUEUES, Api, Object
from tests.integration.harness.control_plane import ControlPlane, running_cluster
from tests.integration.harness.webhook import WebhookProcess

FLAGS = ("--audit-log", "--apiserver-flag=disable-admission-plugins=ServiceAccount")


@pytest.fixture(scope="session")
def control_plane(cluster_home: Path) -> Iterator[ControlPlane]:
    with running_cluster("webhook", home=cluster_home, flags=FLAGS) as plane:
        yield plane


@pytest.fixture(scope="session")
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    async with Api.connected(control_plane.admin_kubeconfig) as connected:
        yield connected


@pytest.fixture(scope="session")
async def webhook(
    control_plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WebhookProcess]:
    """A webhook for all namespaces, made by `--local`, and the Queue `default`."""
    await api.create(QUEUES, queue("default"))
    process = WebhookProcess(
        kubeconfig=control_plane.admin_kubeconfig,
        log=tmp_path_factory.mktemp("webhook") / "webhook.log",
        flags=("--local", "--webhook-configuration=local", "--gang-scheduler=volcano"),
    )
    await process.start()
    yield process
    await process.stop()


def queue(name: str, **spec: object) -> Object:
    """A Queue; keywords are fields of its spec."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }

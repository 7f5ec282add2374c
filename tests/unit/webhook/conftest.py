"""Fixtures of the webhook tests: an API server with some Queues, and a client for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.kube.conftest import write_kubeconfig
from tests.unit.kube.fake_server import FakeServer
from tests.unit.webhook.builders import QUEUES

from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as made:
        made.put(QUEUES, "", "default", status={"state": "Open"})
        made.put(QUEUES, "", "closed", status={"state": "Closed"})
        made.put(QUEUES, "", "family")
        made.put(QUEUES, "", "child", spec={"parent": "family"})
        yield made


@pytest.fixture
async def api(server: FakeServer, tmp_path: Path) -> AsyncIterator[ApiClient]:
    (tmp_path / "token").write_text("t")
    path = write_kubeconfig(tmp_path / "config", f"server: {server.url}", "tokenFile: token")
    async with ApiClient(load_credentials(kubeconfig=path, context=None), user_agent="test") as made:
        yield made

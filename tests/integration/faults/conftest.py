"""The fault proxy, in front of the shared control plane."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.faults.proxy import FaultProxy, open_proxy
from tests.integration.harness.control_plane import ControlPlane


@pytest.fixture
async def proxy(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[FaultProxy]:
    async with open_proxy(control_plane.operator_kubeconfig, folder=tmp_path) as opened:
        yield opened

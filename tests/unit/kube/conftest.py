"""Fixtures of the kube tests: a server that can fail, a client for it, and a loop whose clock is simulated."""

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop
from tests.unit.kube.fake_server import FakeServer

from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials

R = TypeVar("R")
_CONNECTING = ("test_transport.py", "test_client.py")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run what owns connections on the operator's loop too, which ends connections in its own way."""
    if item.path.name in _CONNECTING:
        return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.SelectorEventLoop}


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as made:
        yield made


@pytest.fixture
def kubeconfig(tmp_path: Path, server: FakeServer) -> Path:
    return write_kubeconfig(tmp_path / "config", f"server: {server.url}", "tokenFile: token")


@pytest.fixture
async def api(server: FakeServer, kubeconfig: Path) -> AsyncIterator[ApiClient]:
    (kubeconfig.parent / "token").write_text("first")
    credentials = load_credentials(kubeconfig=kubeconfig, context=None)
    async with ApiClient(credentials, user_agent="test") as made:
        yield made


def write_kubeconfig(path: Path, cluster: str, user: str, *, context: str = "") -> Path:
    """Write a kubeconfig of one context; the arguments are the inner parts of YAML flow maps."""
    path.write_text(
        f"clusters: [{{name: c, cluster: {{{cluster}}}}}]\n"
        f"users: [{{name: u, user: {{{user}}}}}]\n"
        f"contexts: [{{name: x, context: {{cluster: c, user: u{', ' + context if context else ''}}}}}]\n"
        "current-context: x\n"
    )
    return path


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until `condition` holds; a test that waits in vain ends by its timeout."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - conditions of a server and a store have no event in common
            await asyncio.sleep(0.001)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop that jumps to its next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.now = 1000.0

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0:
            self._loop.now += timeout
            timeout = 0
        return super().select(timeout)


def simulate(make: Callable[[SimulatedLoop], Awaitable[R]]) -> R:
    """Run a coroutine in simulated time and return its result."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:

        async def main() -> R:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SimulatedLoop)
            return await make(loop)

        return runner.run(main())

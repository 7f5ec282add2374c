"""The operator as a real process, to be killed, stopped and started again."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import aiohttp

VCJOB: Final = str(Path(sys.executable).with_name("vcjob"))
_READY_TIMEOUT_S: Final = 90.0  # on a machine with nothing else to do it takes two
_POLL_S: Final = 0.05


class OperatorProcess:
    """One `vcjob operator`; its logs over all its lives are in `log`."""

    def __init__(self, *, kubeconfig: Path, log: Path, flags: Sequence[str] = (), env: Mapping[str, str]) -> None:
        self.health_url = f"http://127.0.0.1:{free_port()}"
        self.metrics_url = f"http://127.0.0.1:{free_port()}"
        self.log = log
        self.process: asyncio.subprocess.Process | None = None
        # What stands later on a command line wins, so `flags` override these.
        self._command = (
            VCJOB,
            "operator",
            f"--kubeconfig={kubeconfig}",
            f"--health-bind-address={self.health_url.removeprefix('http://')}",
            f"--metrics-bind-address={self.metrics_url.removeprefix('http://')}",
            "--no-leader-elect",
            "--gang-scheduler=none",
            *flags,
        )
        self._env = {**os.environ, **env}

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self, *, wait_ready: bool = True) -> None:
        """Start it, and wait until /readyz says so."""
        assert not self.running, "it runs already"
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=self._env
            )
        if wait_ready:
            await self.wait_ready()

    async def wait_ready(self, *, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Wait until /readyz answers 200; raises AssertionError, with the end of the log, when it does not."""
        try:
            async with asyncio.timeout(timeout_s), aiohttp.ClientSession() as session:
                while not await self._says_ok(session, path="/readyz"):
                    assert self.running, f"the operator ended:\n{self.last_lines()}"
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise AssertionError(f"the operator did not become ready:\n{self.last_lines()}") from None

    async def kill(self) -> None:
        """End it as a crash would: SIGKILL."""
        if self.process and self.running:
            self.process.kill()
            await self.process.wait()

    async def stop(self, *, timeout_s: float = 10.0) -> int:
        """End it as Kubernetes does, by SIGTERM, and return its exit code; raises TimeoutError."""
        assert self.process is not None
        if self.running:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(timeout_s):
            return await self.process.wait()

    async def restart(self) -> None:
        """Kill it and start it again."""
        await self.kill()
        await self.start()

    async def get(self, url: str) -> tuple[int, str]:
        """Return status and text of one of its own pages (`health_url` or `metrics_url` and a path)."""
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()

    def last_lines(self, count: int = 60) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:]) if self.log.exists() else ""

    async def _says_ok(self, session: aiohttp.ClientSession, *, path: str) -> bool:
        try:
            async with session.get(self.health_url + path, timeout=aiohttp.ClientTimeout(total=2)) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

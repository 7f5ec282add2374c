"""/livez, /readyz and /metrics: they tell the truth about this process, with a sentence for each check that fails.

Liveness fails only for what a restart heals (a dead watcher, a stuck pass, a loop that hangs); readiness fails for what
is missing around the process.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from vcjob.kube.clock import steady

from .addresses import BindAddress

__all__ = ("CannotListen", "Check", "HealthServer", "Pulse")

_PULSE_S: Final = 5.0  # each waking costs a process that has nothing to do
_LAG_S: Final = 15.0


class CannotListen(Exception):
    """An address is taken or not ours; the message names it."""

    def __init__(self, address: BindAddress, error: OSError) -> None:
        super().__init__(f"cannot listen: {address.host}:{address.port}: {error.strerror or error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must be right. `find_fault` returns a sentence, or nothing when it is."""

    name: str
    find_fault: Callable[[], str]


class Pulse:
    """The pulse of the event loop, which somebody must `feel` for as long as the process runs."""

    def __init__(self) -> None:
        self._felt_at = steady()

    async def feel(self) -> None:
        while True:
            self._felt_at = steady()
            await asyncio.sleep(_PULSE_S)

    def find_fault(self) -> str:
        lag = steady() - self._felt_at
        return f"the event loop has not turned for {lag:.0f} s" if lag > _LAG_S else ""


class HealthServer:
    """The two small HTTP servers of an operator process."""

    def __init__(self, *, live: Iterable[Check], ready: Iterable[Check], render_metrics: Callable[[], bytes]) -> None:
        self._live = tuple(live)
        self._ready = tuple(ready)
        self._render_metrics = render_metrics
        self._runners: list[web.AppRunner] = []

    async def start(self, *, health: BindAddress, metrics: BindAddress) -> None:
        """Listen. Raises CannotListen."""
        probes = [web.get("/livez", self._livez), web.get("/healthz", self._livez), web.get("/readyz", self._readyz)]
        pages = [web.get("/metrics", self._metrics)]
        if health == metrics:
            await self._serve(health, [*probes, *pages])
        else:
            await self._serve(health, probes)
            await self._serve(metrics, pages)

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, address: BindAddress, routes: list[web.RouteDef]) -> None:
        if not address.port:
            return
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, address.host or None, address.port).start()
        except OSError as error:
            raise CannotListen(address, error) from error

    async def _livez(self, request: web.Request) -> web.Response:
        return _answer(self._live)

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer((*self._live, *self._ready))

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._render_metrics(), content_type="text/plain", charset="utf-8")


def _answer(checks: Iterable[Check]) -> web.Response:
    faults = [(check.name, check.find_fault()) for check in checks]
    lines = [f"[-]{name}: {fault}" if fault else f"[+]{name} ok" for name, fault in faults]
    failed = any(fault for _, fault in faults)
    return web.Response(text="\n".join([*lines, "failed" if failed else "ok", ""]), status=503 if failed else 200)

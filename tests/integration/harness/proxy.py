"""A door between the operator and the API server at which a test can stand.

It sees every request in the clear, so a test can do something before a request reaches the server, or when the server
has carried it out and the answer is still on its way: the two moments at which a process can be interrupted.
"""

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from aiohttp import web
from tests.integration.harness.operator import free_port

__all__ = ("Door", "Passage", "open_door")

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A request that went through, and the status of its answer."""

    method: str
    path: str
    status: int


@dataclass(slots=True, kw_only=True)
class Door:
    """`before` and `after` are called around each write; what they raise cuts the connection."""

    kubeconfig: Path
    writes: list[Passage] = field(default_factory=list)
    before: Callable[[str, str], Awaitable[None]] | None = None  # method and path
    after: Callable[[Passage], Awaitable[None]] | None = None


@asynccontextmanager
async def open_door(kubeconfig: Path, *, folder: Path) -> AsyncIterator[Door]:
    """Listen on loopback for what `Door.kubeconfig` leads to the server of `kubeconfig`."""
    port = free_port()
    door = Door(kubeconfig=folder / f"door-{port}.kubeconfig")
    server, context = _redirect(kubeconfig, door.kubeconfig, port=port)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0), timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        app = web.Application(client_max_size=16 * 1024 * 1024)

        async def pass_on(request: web.Request) -> web.StreamResponse:
            return await _pass(request, door, session=session, server=server)

        app.router.add_route("*", "/{path:.*}", pass_on)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield door
        finally:
            await runner.cleanup()


def _redirect(given: Path, made: Path, *, port: int) -> tuple[str, ssl.SSLContext]:
    """Write a kubeconfig that leads to the port; return the server that the given one leads to, and how to trust it."""
    config = yaml.safe_load(given.read_text())
    cluster = config["clusters"][0]["cluster"]
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
    made.write_text(yaml.safe_dump(config))
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return cluster["server"], ssl.create_default_context(cadata=authority)


async def _pass(request: web.Request, door: Door, *, session: aiohttp.ClientSession, server: str) -> web.StreamResponse:
    is_write = request.method in WRITES and "/apis/authorization" not in request.path
    body = await request.read()
    if is_write and door.before is not None:
        await door.before(request.method, request.path)
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
    async with session.request(
        request.method, server + request.raw_path, headers=headers, data=body or None, allow_redirects=False
    ) as answer:
        if is_write:
            passage = Passage(method=request.method, path=request.path, status=answer.status)
            door.writes.append(passage)
            if door.after is not None:
                await door.after(passage)
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        response = web.StreamResponse(status=answer.status, headers=passed)
        await response.prepare(request)
        try:
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
        except (ConnectionError, aiohttp.ClientError):
            pass  # one side has gone: the other will notice
        return response

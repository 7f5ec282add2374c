"""A way to the API server that has bad days: a proxy between the operator and the server that injects faults.

It ends TLS with a certificate of its own, so that the operator meets what it meets in production: HTTP/1.1 over TLS,
kept connections, watches. Faults are rules, taken in the order in which they were made; each meets a share of the
requests that it is about, with a chance of a fixed seed, and counts them: a test can see whether it has mattered.
"""

import asyncio
import base64
import json
import random
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.integration.harness.operator import free_port

__all__ = (
    "CutAnswer",
    "Expire",
    "FaultProxy",
    "Hush",
    "LoseAnswer",
    "Refuse",
    "Rule",
    "Say",
    "Slow",
    "Stale",
    "Swallow",
    "open_proxy",
)

WATCH: Final = "WATCH"
LIST: Final = "LIST"
_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Answer with an error; the server never hears of the request."""

    code: int
    reason: str = ""
    retry_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Answer late."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAnswer:
    """Pass some bytes of the answer, then break the connection: in the middle of an object, of a line, of a watch."""

    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAnswer:
    """Let the server carry the request out, then break the connection before a word of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swallow:
    """Break the connection before the server hears of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hush:
    """Keep the answer open and pass nothing of it: the server has gone without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Answer a watch with what stands for an error in it, 410 unless another code is given."""

    code: int = 410
    reason: str = "Expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Answer a list as the world was at an older resourceVersion."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Answer 200 with what no API server says; the server never hears of the request."""

    body: bytes
    content_type: str = "application/json"


Fault = Refuse | Say | Slow | CutAnswer | LoseAnswer | Swallow | Hush | Expire | Stale


@dataclass(slots=True, kw_only=True)
class Rule:
    """A fault, and the requests that meet it."""

    fault: Fault
    verbs: frozenset[str]
    part: str  # of the path
    share: float
    times: int | None
    chance: random.Random
    met: int = 0

    def meets(self, verb: str, path: str) -> bool:
        if verb not in self.verbs or self.part not in path or (self.times is not None and self.met >= self.times):
            return False
        if self.chance.random() >= self.share:
            return False
        self.met += 1
        return True


@dataclass(eq=False, slots=True, kw_only=True)
class _Watch:
    silent: bool


@dataclass(slots=True, kw_only=True)
class FaultProxy:
    """The proxy while it stands; `kubeconfig` leads to it."""

    kubeconfig: Path
    authority: Path  # the file in which the kubeconfig's user finds whom to trust
    identity: ssl.SSLContext
    rules: list[Rule] = field(default_factory=list)
    watches: set["_Watch"] = field(default_factory=set)  # that are open
    seen: list[tuple[str, str, int]] = field(default_factory=list)  # verb, path, code of what was answered
    open: set[asyncio.Transport] = field(default_factory=set)

    def inject(self, fault: Fault, *verbs: str, path: str = "", share: float = 1.0, times: int | None = None) -> Rule:
        """Have a share of the requests of these verbs, with `path` in their path, meet a fault, at most `times` times.

        Verbs are those of HTTP, with WATCH and LIST for what the API means by them.
        """
        chance = random.Random(len(self.rules))
        rule = Rule(fault=fault, verbs=frozenset(verbs), part=path, share=share, times=times, chance=chance)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        """Inject nothing any more. Watches that have fallen silent stay so: it is the other side that has to notice."""
        self.rules.clear()

    def hush(self) -> None:
        """Let every watch that is open now fall silent, and never end."""
        for watch in self.watches:
            watch.silent = True

    def cut(self) -> None:
        """Break every connection."""
        for transport in list(self.open):
            transport.abort()

    def renew_identity(self) -> None:
        """Show a certificate of a new authority to new connections, and put that where the user looks."""
        self.authority.write_bytes(_load_identity(self.identity, folder=self.authority.parent))

    def count(self, verb: str, part: str, *, code: int | None = None) -> int:
        """Return how many such requests have been answered."""
        return sum(v == verb and part in p and code in (None, c) for v, p, c in self.seen)


@asynccontextmanager
async def open_proxy(kubeconfig: Path, *, folder: Path) -> AsyncIterator[FaultProxy]:
    """Stand on loopback between whom `FaultProxy.kubeconfig` is given to and the server of `kubeconfig`."""
    port = free_port()
    config = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    proxy = FaultProxy(
        kubeconfig=folder / f"proxy-{port}.kubeconfig",
        authority=folder / f"proxy-{port}.crt",
        identity=ssl.create_default_context(ssl.Purpose.CLIENT_AUTH),
    )
    config["clusters"][0]["cluster"] = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": proxy.authority.name,
    }
    await asyncio.to_thread(proxy.kubeconfig.write_text, yaml.safe_dump(config))
    await asyncio.to_thread(proxy.renew_identity)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority), limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    ) as session:
        passing = _Passing(proxy, session=session, server=cluster["server"])
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", passing.handle)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, keepalive_timeout=90, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=proxy.identity).start()
        try:
            yield proxy
        finally:
            proxy.cut()
            await runner.cleanup()


class _Passing:
    """Takes requests to the server and answers back."""

    def __init__(self, proxy: FaultProxy, *, session: aiohttp.ClientSession, server: str) -> None:
        self._proxy = proxy
        self._session = session
        self._server = server

    async def handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError
        self._proxy.open.add(transport)
        try:
            return await self._pass(request, transport)
        finally:
            self._proxy.open.discard(transport)

    async def _pass(self, request: web.Request, transport: asyncio.Transport) -> web.StreamResponse:
        verb = _verb(request)
        body = await request.read()
        fault = next((rule.fault for rule in self._proxy.rules if rule.meets(verb, request.path)), None)
        query = dict(request.query)
        match fault:
            case Refuse():
                status = _status(fault.code, fault.reason)
                asked = {"Retry-After": fault.retry_after} if fault.retry_after else {}
                return self._answer(request, verb, fault.code, _line(status), asked)
            case Expire():
                event = {"type": "ERROR", "object": _status(fault.code, fault.reason)}
                return self._answer(request, verb, 200, _line(event))
            case Say():
                return self._answer(request, verb, 200, fault.body, {"Content-Type": fault.content_type})
            case Swallow():
                transport.abort()
                raise ConnectionResetError
            case Stale() if "resourceVersion" in query:  # who names none is promised the present
                query |= {"resourceVersion": fault.version, "resourceVersionMatch": "Exact"}
            case Slow():
                await asyncio.sleep(fault.seconds)
            case _:
                pass
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        try:
            async with self._session.request(
                request.method, self._server + request.path, params=query, headers=headers, data=body or None
            ) as answer:
                self._proxy.seen.append((verb, request.path, answer.status))
                if isinstance(fault, LoseAnswer):
                    await answer.read()
                    transport.abort()
                    raise ConnectionResetError
                return await self._pump(request, answer, fault, transport, is_watch=verb == WATCH)
        except aiohttp.ClientError:  # the server has gone: so have we
            transport.abort()
            raise ConnectionResetError from None

    async def _pump(
        self,
        request: web.Request,
        answer: aiohttp.ClientResponse,
        fault: Fault | None,
        transport: asyncio.Transport,
        *,
        is_watch: bool,
    ) -> web.StreamResponse:
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        if not is_watch and not isinstance(fault, CutAnswer):
            return web.Response(status=answer.status, headers=passed, body=await answer.read())
        response = web.StreamResponse(status=answer.status, headers=passed)
        await response.prepare(request)
        left = fault.after if isinstance(fault, CutAnswer) else None
        watch = _Watch(silent=isinstance(fault, Hush))
        if is_watch:
            self._proxy.watches.add(watch)
        try:
            async for chunk in answer.content.iter_any():
                if watch.silent:
                    continue
                if left is not None and len(chunk) > left:
                    await response.write(chunk[:left])
                    break
                await response.write(chunk)
                left = None if left is None else left - len(chunk)
            if watch.silent:  # the server's end of it does not come through either
                await asyncio.Event().wait()
        finally:
            self._proxy.watches.discard(watch)
        if left is not None:
            await asyncio.sleep(0)
            transport.abort()
            raise ConnectionResetError
        return response

    def _answer(
        self, request: web.Request, verb: str, code: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})
    ) -> web.Response:
        self._proxy.seen.append((verb, request.path, code))
        return web.Response(status=code, headers={"Content-Type": "application/json"} | dict(headers), body=body)


def _verb(request: web.Request) -> str:
    if request.method != "GET":
        return request.method
    if request.query.get("watch") in ("1", "true"):
        return WATCH
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return LIST if len(rest) == 1 else "GET"


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _status(code: int, reason: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the proxy has a bad day",
        "reason": reason,
        "code": code,
    }


def _load_identity(context: ssl.SSLContext, *, folder: Path) -> bytes:
    """Have a server show a certificate that vouches for itself, with a new key; return it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fault proxy")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:  # readable by us alone
        file.write(private + public)
        context.load_cert_chain(file.name)
    return public

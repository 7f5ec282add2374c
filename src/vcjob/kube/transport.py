"""HTTP/1.1 requests over kept connections: the least that a request costs.

A Job of a thousand Pods is a thousand requests, and most of an operator's processor time; a general HTTP client spends
three times as much on each. Owns its connections. What it does not do: redirects, cookies, compression, proxies, and
handing on an answer before it is whole (watches go over aiohttp).
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlencode, urlsplit

import httptools

from vcjob.kube.clock import steady

__all__ = ("CONNECT_TIMEOUT_S", "KEEPALIVE_S", "TCP_OPTIONS", "Answer", "Broken", "Transport", "Unconnected")

KEEPALIVE_S: Final = 75.0  # below the 90 s after which the API server closes idle connections
CONNECT_TIMEOUT_S: Final = 10.0
# A dead peer is noticed within 30 + 3 x 10 s even when no bytes are due.
TCP_OPTIONS: Final = tuple(
    (level, getattr(socket, name), value)
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    )
    if hasattr(socket, name)
)
_HEARD: Final = (b"date", b"retry-after")  # the headers that somebody reads
_FRAMING: Final = (b"content-length", b"transfer-encoding")
_WITHOUT_BODY: Final = (100, 101, 102, 103, 204, 304)


class Broken(OSError):
    """The connection broke, or what came over it was not HTTP. The request may have been carried out."""


class Unconnected(OSError):
    """There is no connection, so nothing has been sent."""


class Answer:
    """A complete answer: status, body, and of the headers `date` and `retry-after`, by lower-case name."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Mapping[bytes, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers


class Transport:
    """Connections to one server. For one running loop; `close` it there."""

    def __init__(self, server: str, *, ssl_context: ssl.SSLContext | None, user_agent: str) -> None:
        """`server` is a URL; a path in it is put before those of the requests."""
        url = urlsplit(server)
        self._host = url.hostname or ""
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._prefix = url.path.rstrip("/")
        self._ssl = ssl_context
        # Compressing costs the server more than the bytes are worth within a cluster.
        self._fixed = (
            f"Host: {url.netloc.rpartition('@')[2]}\r\nUser-Agent: {user_agent}\r\nAccept-Encoding: identity\r\n"
        )
        self._auth: Mapping[str, str] = {}
        self._heads: dict[tuple[str, str], bytes] = {}
        self._idle: list[_Connection] = []  # the one that was used last is taken first, so that the others can expire
        self._all: set[_Connection] = set()

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Send these headers with every request from now on."""
        self._auth = headers
        self._heads.clear()

    async def request(
        self,
        verb: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "",
        accept: str,
        timeout_s: float,
        once: bool = False,
    ) -> Answer:
        """Send one request and return the whole answer.

        When a kept connection turns out to be closed before any answer, a request other than POST and PATCH is sent
        once more, unless `once`. Raises TimeoutError, Broken and Unconnected.
        """
        head = self._heads.get((content_type, accept))
        if head is None:
            head = self._heads[(content_type, accept)] = self._make_head(content_type, accept)
        query = f"?{urlencode(params)}" if params else ""
        length = b"" if body is None and verb == "GET" else b"Content-Length: %d\r\n" % len(body or b"")
        data = b"".join(
            (f"{verb} {self._prefix}{path}{query} HTTP/1.1\r\n".encode(), head, length, b"\r\n", body or b"")
        )
        again = not once and verb not in ("POST", "PATCH")
        async with asyncio.timeout(timeout_s):
            if (kept := self._take()) is not None:
                try:
                    return await self._send(kept, data)
                except Broken:
                    if not again or kept.heard:
                        raise
            return await self._send(await self._connect(), data)

    async def close(self) -> None:
        """Close all connections, and let the loop do it."""
        gone = [connection.gone for connection in self._all]
        for connection in list(self._all):
            connection.close()
        self._idle.clear()
        if gone:
            await asyncio.wait(gone)

    def _make_head(self, content_type: str, accept: str) -> bytes:
        lines = [f"{name}: {value}\r\n" for name, value in self._auth.items()]
        if content_type:
            lines.append(f"Content-Type: {content_type}\r\n")
        return f"{self._fixed}Accept: {accept}\r\n{''.join(lines)}".encode("latin-1")

    async def _send(self, connection: "_Connection", data: bytes) -> Answer:
        try:
            answer = await connection.send(data)
        except BaseException:
            connection.close()
            raise
        if connection.usable:
            connection.idle_since = steady()
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def _take(self) -> "_Connection | None":
        """Return a kept connection; those that were idle for too long are closed, the oldest of which comes first."""
        limit = steady() - KEEPALIVE_S
        while self._idle and self._idle[0].idle_since < limit:
            self._idle.pop(0).close()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self) -> "_Connection":
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._all),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                    server_hostname=self._host if self._ssl is not None else None,
                )
        except OSError as error:
            raise Unconnected(f"cannot connect to {self._host}:{self._port}: {error or 'timed out'}") from error
        return connection


class _Connection(asyncio.Protocol):
    """A connection with at most one request on it."""

    __slots__ = (
        "_all",
        "_body",
        "_framed",
        "_headers",
        "_parser",
        "_transport",
        "_until_eof",
        "_waiter",
        "gone",
        "heard",
        "idle_since",
        "usable",
    )

    def __init__(self, everyone: "set[_Connection]") -> None:
        self._all = everyone
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._headers: dict[bytes, str] = {}
        self._framed = False  # the answer says where it ends
        self._until_eof = False  # it does not, and has begun
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard = False  # a byte of the answer
        self.idle_since = 0.0  # steady
        self.usable = False  # for another request

    async def send(self, data: bytes) -> Answer:
        assert self._transport is not None and self._waiter is None
        self.heard = False
        if self._transport.is_closing():
            raise Broken("the server closed the connection")
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # The loop's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self.usable = True
        self._all.add(self)
        link = transport.get_extra_info("socket")
        for level, option, value in TCP_OPTIONS:
            link.setsockopt(level, option, value)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():  # bytes that nobody asked for, or no longer
            self.close()
            return
        self.heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Broken(f"not an HTTP answer: {error}"))
            self.close()

    def eof_received(self) -> None:
        self.usable = False
        if self._until_eof:
            self._complete()

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._all.discard(self)
        self.gone.set_result(None)
        self._fail(Broken(str(error) if error else "the server closed the connection"))

    def _fail(self, error: Broken) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # The parser's calls

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():  # an answer to nothing: whose is the next one?
            self.usable = False
        self._body = []
        self._headers = {}
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _FRAMING:
            self._framed = True
        elif name in _HEARD:
            self._headers[name] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._until_eof = not self._framed and self._parser.get_status_code() not in _WITHOUT_BODY

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:  # an interim answer; the true one follows
            return
        if not self._parser.should_keep_alive():
            self.usable = False
        self._complete()

    def _complete(self) -> None:
        self._until_eof = False
        if self._waiter is not None and not self._waiter.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._waiter.set_result(Answer(self._parser.get_status_code(), body, self._headers))

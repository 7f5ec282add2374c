"""HTTP as servers really speak it, whole, in pieces and broken off."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from vcjob.kube.transport import Broken, Transport, Unconnected

ANY = "*/*"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


class Script:
    """A server that answers each request with the next of its answers, then hangs up if it is None."""

    def __init__(self, *answers: bytes | tuple[bytes, ...] | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.asked = asyncio.Event()
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
                )
                self.requests.append(head + await reader.readexactly(length))
                self.asked.set()
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                for piece in answer if isinstance(answer, tuple) else (answer,):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if b"Connection: close" in (answer if isinstance(answer, bytes) else b"".join(answer)):
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def talking_to(script: Script, *, prefix: str = "") -> AsyncIterator[Transport]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    transport = Transport(
        f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{prefix}", ssl_context=None, user_agent="test"
    )
    try:
        yield transport
    finally:
        await transport.close()
        server.close()
        await server.wait_closed()


async def get(transport: Transport, *, once: bool = False, timeout_s: float = 5.0) -> bytes:
    return (await transport.request("GET", "/x", accept=ANY, timeout_s=timeout_s, once=once)).body


async def test_one_connection_serves_many_requests() -> None:
    script = Script()
    async with talking_to(script) as transport:
        for _ in range(3):
            assert await get(transport) == b"ok"
    assert (len(script.requests), script.connections) == (3, 1)


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    script = Script()
    async with talking_to(script) as transport:
        assert await asyncio.gather(*(get(transport) for _ in range(5))) == [b"ok"] * 5
        assert await asyncio.gather(*(get(transport) for _ in range(5))) == [b"ok"] * 5
    assert script.connections == 5


async def test_a_request_is_what_the_server_expects() -> None:
    script = Script()
    async with talking_to(script, prefix="/clusters/a/") as transport:
        transport.authenticate({"Authorization": "Bearer t"})
        await transport.request(
            "POST", "/x", params={"a b": "c&d"}, body=b"{}", content_type="application/json", accept=ANY, timeout_s=5
        )
        transport.authenticate({"Authorization": "Bearer u"})
        await transport.request("DELETE", "/y", accept=ANY, timeout_s=5)
    first, second = script.requests
    assert first.startswith(b"POST /clusters/a/x?a+b=c%26d HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" in first
    assert b"\r\nAuthorization: Bearer u\r\nContent-Length: 0\r\n\r\n" in second


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        pytest.param((OK[:5], OK[5:20], OK[20:]), 200, b"ok", id="in pieces"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n",
            200,
            b"ok!",
            id="chunked",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok", id="after an interim answer"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", id="without a body"),
        pytest.param(b"HTTP/1.1 409 Conflict\r\nContent-Length: 1\r\n\r\n!", 409, b"!", id="a refusal"),
        pytest.param(CLOSING + b"\r\nto the end", 200, b"to the end", id="without a length"),
        pytest.param(CLOSING + b"Content-Length: 2\r\n\r\nok", 200, b"ok", id="the last one"),
    ],
)
async def test_an_answer_may_come_in_any_form(answer: bytes, status: int, body: bytes) -> None:
    script = Script(answer)
    async with talking_to(script) as transport:
        got = await transport.request("GET", "/x", accept=ANY, timeout_s=5)
        assert (got.status, got.body) == (status, body)
        assert await get(transport) == b"ok"


async def test_a_large_body_comes_whole() -> None:
    size = 3_000_000
    script = Script(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    async with talking_to(script) as transport:
        assert len(await get(transport)) == size


async def test_the_headers_that_somebody_reads_are_kept() -> None:
    script = Script(b"HTTP/1.1 429 Slow\r\nRETRY-AFTER: 3\r\nX-Other: y\r\nContent-Length: 0\r\n\r\n")
    async with talking_to(script) as transport:
        answer = await transport.request("GET", "/x", accept=ANY, timeout_s=5)
    assert answer.headers == {b"retry-after": "3"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"no HTTP at all\r\n\r\n", id="nonsense"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", id="a bad length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX: Connection: close\r\n\r\nok", id="cut off"),
        pytest.param(None, id="nothing"),
    ],
)
async def test_a_broken_answer_is_no_answer(answer: bytes | None) -> None:
    async with talking_to(Script(answer)) as transport:
        with pytest.raises(Broken):
            await get(transport, once=True)
        assert await get(transport) == b"ok"


async def hang_up(transport: Transport, script: Script) -> None:
    """Keep a connection that the server ends with the next request."""
    assert await get(transport) == b"ok"
    script.answers = [None]


@pytest.mark.parametrize(
    ("ask", "again"),
    [
        pytest.param(lambda t: t.request("GET", "/x", accept=ANY, timeout_s=5), True, id="GET"),
        pytest.param(lambda t: t.request("DELETE", "/x", accept=ANY, timeout_s=5), True, id="DELETE"),
        pytest.param(lambda t: t.request("DELETE", "/x", accept=ANY, timeout_s=5, once=True), False, id="DELETE once"),
        pytest.param(lambda t: t.request("POST", "/x", accept=ANY, body=b"{}", timeout_s=5), False, id="POST"),
        pytest.param(lambda t: t.request("PATCH", "/x", accept=ANY, body=b"{}", timeout_s=5), False, id="PATCH"),
    ],
)
async def test_only_what_does_no_harm_is_sent_again(ask: Callable[[Transport], object], again: bool) -> None:
    script = Script()
    async with talking_to(script) as transport:
        await hang_up(transport, script)
        if again:
            await ask(transport)  # type: ignore[misc]
        else:
            with pytest.raises(Broken):
                await ask(transport)  # type: ignore[misc]
    assert len(script.requests) == (3 if again else 2)


async def test_what_was_answered_in_part_is_not_sent_again() -> None:
    script = Script(OK, b"HTTP/1.1 200 OK\r\nX: Connection: close\r\nContent-Length: 9\r\n\r\nok")
    async with talking_to(script) as transport:
        assert await get(transport) == b"ok"
        with pytest.raises(Broken):
            await get(transport)
    assert len(script.requests) == 2


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    script = Script(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
    async with talking_to(script) as transport:
        assert await get(transport) == b"ok"
        assert await get(transport) == b"ok"
    assert script.connections == 2


async def test_an_answer_that_does_not_come_is_given_up_and_its_connection_too() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
    async with talking_to(script) as transport:
        with pytest.raises(TimeoutError):
            await get(transport, timeout_s=0.05)
        assert await get(transport) == b"ok"
    assert script.connections == 2


async def test_a_cancelled_request_takes_its_connection_with_it() -> None:
    script = Script(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
    async with talking_to(script) as transport:
        task = asyncio.create_task(get(transport))
        await script.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await get(transport) == b"ok"
    assert script.connections == 2


async def test_a_server_that_is_not_there_is_named() -> None:
    transport = Transport("http://127.0.0.1:9", ssl_context=None, user_agent="test")
    with pytest.raises(Unconnected, match=r"127\.0\.0\.1:9: .*"):
        await get(transport)


async def test_a_server_without_tls_is_not_talked_to() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nthis is no TLS")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = Transport(url, ssl_context=ssl.create_default_context(), user_agent="test")
    async with server:
        with pytest.raises(Unconnected, match="SSL"):
            await get(transport)

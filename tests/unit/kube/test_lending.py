"""What a server refuses for a while does not reach the borrower of a session."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.kube.fake_server import Answer, CutAnswer, FakeServer
from yarl import URL

from vcjob.kube import lending
from vcjob.kube.client import ApiClient
from vcjob.kube.forms import Identity
from vcjob.kube.lending import Patience

PODS = "/api/v1/pods"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note the delays instead of waiting for them."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(lending.asyncio, "sleep", sleep)
    return slept


@pytest.mark.parametrize(
    "code", [203, 204, 206, 302, 307, 400, 403, 404, 405, 408, 409, 422, 429, 500, 501, 502, 503, 504, 522]
)
async def test_a_refusal_that_passes_is_waited_for(api: ApiClient, server: FakeServer, code: int):
    server.inject(Answer(code=code), verb="GET", times=3)
    async with api.lend_session().get(server.url + PODS) as response:
        assert response.status == 200
    assert server.count("GET", "pods") == 4


async def test_a_login_that_is_refused_is_for_the_borrower(api: ApiClient, server: FakeServer):
    server.inject(Answer(code=401), verb="GET")
    async with api.lend_session().get(server.url + PODS) as response:
        assert response.status == 401


async def test_a_list_that_was_left_too_long_begins_anew(api: ApiClient, server: FakeServer):
    server.put(PODS, "ns", "a")
    server.inject(Answer(code=410, reason="Expired"), verb="GET")
    async with api.lend_session().get(server.url + PODS, params={"limit": "5", "continue": "x"}) as response:
        assert len((await response.json())["items"]) == 1
    assert [path for verb, path in server.calls] == [f"{PODS}?limit=5&continue=x", f"{PODS}?limit=5"]


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [("7200", 30, 30), ("3", 3, 3), (None, 0.25, 0.5), ("Wed, 21 Oct 2065 07:28:00 GMT", 0.25, 0.5)],
)
async def test_a_server_may_ask_for_half_a_minute_at_most(
    api: ApiClient, server: FakeServer, quick: list[float], asked: str | None, least: float, most: float
):
    server.inject(Answer(code=429, retry_after=asked), verb="GET")
    async with api.lend_session().get(server.url + PODS):
        pass
    assert least <= quick[0] <= most


async def test_it_says_when_a_path_was_last_answered(api: ApiClient, server: FakeServer):
    assert api.lent_heard == {}
    async with api.lend_session().get(server.url + PODS, params={"watch": ""}):
        pass
    assert set(api.lent_heard) == {PODS}


async def test_it_says_why_a_path_is_not_answered(api: ApiClient, server: FakeServer, monkeypatch: pytest.MonkeyPatch):
    said: list[dict[str, str]] = []

    async def sleep(seconds: float) -> None:
        said.append(dict(api.lent_failing))

    monkeypatch.setattr(lending.asyncio, "sleep", sleep)
    server.inject(Answer(code=404), verb="GET", times=2)
    async with api.lend_session().get(server.url + PODS):
        pass
    assert said == [{PODS: "not served, is its CRD installed? (HTTP 404)"}] * 2
    assert api.lent_failing == {}


async def test_an_answer_that_is_cut_is_asked_for_again(api: ApiClient, server: FakeServer):
    server.put("/api/v1/pods", "ns", "a")
    server.inject(CutAnswer(), verb="GET", times=2)
    async with api.lend_session().get(server.url + PODS) as response:
        assert len((await response.json())["items"]) == 1
    assert server.count("GET", "pods") == 3


async def test_a_watch_that_is_too_old_begins_with_all_there_is(api: ApiClient, server: FakeServer):
    server.inject(Answer(code=410, reason="Expired"), verb="WATCH")
    async with api.lend_session().get(server.url + PODS, params={"watch": "true", "resourceVersion": "7"}) as response:
        assert response.status == 200
    assert [path for verb, path in server.calls] == [f"{PODS}?watch=true&resourceVersion=7", f"{PODS}?watch=true"]


async def test_a_watch_that_is_cut_again_and_again_does_not_spin(
    api: ApiClient, server: FakeServer, quick: list[float]
):
    session = api.lend_session()
    for _ in range(3):
        async with session.get(server.url + PODS, params={"watch": "true"}):
            pass
    assert len(quick) == 2
    assert all(0 < seconds <= 0.5 for seconds in quick)


async def test_patience_ends_with_the_session(api: ApiClient, server: FakeServer, monkeypatch: pytest.MonkeyPatch):
    session = api.lend_session()

    async def close(seconds: float) -> None:
        await session.close()

    monkeypatch.setattr(lending.asyncio, "sleep", close)
    server.inject(Answer(code=503), verb="GET", times=9)
    with pytest.raises(RuntimeError, match="closed"):
        await session.get(server.url + PODS)
    assert server.count("GET", "pods") == 1


async def test_a_watch_shows_only_what_the_sieve_lets_through(api: ApiClient, server: FakeServer):
    asked: list[str] = []

    def is_news(path: str, told: Identity) -> bool:
        asked.append(path)
        return told.key != ("ns", "ours")

    for name in ("a", "ours", "b"):
        server.put(PODS, "ns", name, text="ä" * 100_000)
    session = api.lend_session(sieve=is_news)
    params = {"watch": "true", "resourceVersion": "100"}
    seen = []
    async with session.get(server.url + PODS, params=params) as response:
        async for chunk in response.content.iter_chunked(1000):
            seen += [json.loads(line)["object"]["metadata"]["name"] for line in chunk.splitlines()]
            if len(seen) == 2:
                break
    assert seen == ["a", "b"]
    assert set(asked) == {PODS}


async def test_a_list_does_not_go_through_the_sieve(api: ApiClient, server: FakeServer):
    server.put(PODS, "ns", "a")
    async with api.lend_session(sieve=lambda path, told: False).get(server.url + PODS) as response:
        assert len((await response.json())["items"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b"null",
        b"[]",
        b"{}",
        b'{"kind":"PodList","metadata":{},"items":[]}',
        b'{"kind":"PodList","metadata":{"resourceVersion":"7"}}',
        b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[null]}',
        b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}',
        b'{"kind":"PodList\xff","metadata":{"resourceVersion":"7"},"items":[]}',
        b'{"kind":"NodeList","metadata":{"resourceVersion":"7"},"items":[]}',
        b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[],"deep":%b%b}' % (b"[" * 90000, b"]" * 90000),
        b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[],"long":%b}' % (b"7" * 6000),
    ],
)
async def test_a_list_that_is_none_is_asked_for_again(api: ApiClient, server: FakeServer, body: bytes):
    server.put(PODS, "ns", "a")
    server.inject(Answer(code=200, raw=body), verb="GET", times=2)
    async with api.lend_session().get(server.url + PODS) as response:
        assert len((await response.json())["items"]) == 1
    assert server.count("GET", "pods") == 3


async def test_what_a_server_says_of_its_kinds_goes_through(api: ApiClient, server: FakeServer):
    body = b'{"kind":"APIResourceList","groupVersion":"v1","resources":[]}'
    server.inject(Answer(code=200, raw=body), verb="GET")
    async with api.lend_session().get(server.url + "/api/v1") as response:
        assert (await response.json())["resources"] == []


async def read_lines(api: ApiClient, server: FakeServer, *said: bytes) -> list[dict[str, Any]]:
    """Return what a watch of Pods tells of a Pod `a` and of what the server says then, until it ends."""
    async with api.lend_session().get(server.url + PODS, params={"watch": "true", "resourceVersion": "1"}) as response:
        server.put(PODS, "ns", "a")
        for line in said:
            server.say(line)
        server.put(PODS, "ns", "b")
        lines: list[dict[str, Any]] = []
        async for chunk in response.content.iter_chunked(1 << 20):
            lines += [json.loads(line) for line in chunk.splitlines()]
            if lines[-1]["object"].get("metadata", {}).get("name") == "b":
                break
    return lines


@pytest.mark.parametrize(
    "line",
    [
        b"<html>welcome</html>\n",
        b"null\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":null}\n',
        b'{"type":"ADDED","object":{"metadata":{}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"7"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x","uid":"u","resourceVersion":"new"}}}\n',
        b'{"type":"ADDED","object":{"kind":"\xff","metadata":{"name":"x","uid":"u","resourceVersion":"7"}}}\n',
        b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"x","uid":"u","resourceVersion":"7"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x","uid":"u","resourceVersion":"7"},"n":%b}}\n' % (b"7" * 6000),
        b'{"type":"BOOKMARK","object":{}}\n',
        b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"unable to decode watch event"}}\n',
        b'{"type":"SURPRISE","object":{"metadata":{"name":"x","uid":"u","resourceVersion":"7"}}}\n',
    ],
)
async def test_a_watch_ends_as_too_old_where_it_cannot_be_read(api: ApiClient, server: FakeServer, line: bytes):
    added, error = await read_lines(api, server, line)
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


async def test_bookmarks_and_versions_too_old_go_through(api: ApiClient, server: FakeServer):
    bookmark = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}\n'
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}\n'
    assert [line["type"] for line in await read_lines(api, server, bookmark, gone)] == [
        "ADDED",
        "BOOKMARK",
        "ERROR",
        "ADDED",
    ]


async def test_watches_that_cannot_be_read_come_less_and_less_often(
    api: ApiClient, server: FakeServer, quick: list[float]
):
    session = api.lend_session()
    for _ in range(8):
        async with session.get(server.url + PODS, params={"watch": "true", "resourceVersion": "1"}) as response:
            server.say(b"nonsense\n")
            async for _ in response.content.iter_chunked(1 << 20):
                pass
    assert quick[0] <= 1
    assert 4 <= quick[-1] <= 10


class Lent:
    """A session that is no more than its middleware."""

    def __init__(self) -> None:
        self.closed = False
        self.middleware: Any = None

    def make(self, middleware: Any) -> Any:
        self.middleware = middleware
        return self


async def test_whatever_fails_in_a_session_that_is_closed_meanwhile_says_so():
    """aiohttp trips over the connector that is gone, and kopf would take that for the end of its watch."""
    session = Lent()
    Patience().lend(session.make)

    async def send(request: Any) -> Any:
        session.closed = True
        raise AttributeError("'NoneType' object has no attribute '_timeout_ceil_threshold'")

    with pytest.raises(RuntimeError, match="Session is closed"):
        await session.middleware(SimpleNamespace(method="GET", url=URL("https://server/api/v1/pods")), send)


async def test_what_fails_in_an_open_session_is_told_as_it_is():
    session = Lent()
    Patience().lend(session.make)

    async def send(request: Any) -> Any:
        raise AttributeError("a fault of the code")

    with pytest.raises(AttributeError):
        await session.middleware(SimpleNamespace(method="GET", url=URL("https://server/api/v1/pods")), send)

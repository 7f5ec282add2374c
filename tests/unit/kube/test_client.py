"""The client: requests, refusals, credentials, streams. Against the fake server; what the server does is left out."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import aiohttp
import msgspec
import pytest
from tests.unit.kube.conftest import until
from tests.unit.kube.fake_server import Answer, FakeServer, LostAnswer, Slow

from vcjob.kube.client import ApiClient, path_template
from vcjob.kube.credentials import load_credentials
from vcjob.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    Throttled,
    TooLarge,
    Unauthorized,
    Unreachable,
)

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}}


async def test_an_object_lives_through_all_verbs(api: ApiClient, server: FakeServer) -> None:
    made = json.loads(await api.create(PODS, POD))
    await api.put(
        f"{PODS}/p", {"metadata": {"name": "p", "resourceVersion": made["metadata"]["resourceVersion"]}, "a": 1}
    )
    await api.merge_patch(f"{PODS}/p", {"metadata": {"labels": {"x": "y"}}})
    got = json.loads(await api.get(f"{PODS}/p"))
    assert (got["a"], got["metadata"]["labels"], got["metadata"]["uid"]) == (1, {"x": "y"}, made["metadata"]["uid"])
    await api.delete(f"{PODS}/p", uid=made["metadata"]["uid"], propagation="Background")
    with pytest.raises(NotFound):
        await api.get(f"{PODS}/p")


async def test_a_body_may_be_ready_bytes_or_hold_ready_parts(api: ApiClient, server: FakeServer) -> None:
    await api.create(PODS, b'{"metadata":{"name":"bytes"}}')
    await api.create(PODS, {"metadata": {"name": "raw"}, "spec": msgspec.Raw(b'{"kept":[1,2]}')})
    stored = server.get("/api/v1/pods", "default", "raw")
    assert stored is not None
    assert stored["spec"] == {"kept": [1, 2]}


async def test_a_delete_of_another_uid_is_a_conflict(api: ApiClient, server: FakeServer) -> None:
    server.put("/api/v1/pods", "default", "p")
    with pytest.raises(Conflict):
        await api.delete(f"{PODS}/p", uid="of-another")


async def test_a_create_that_is_there_and_an_update_that_is_late_differ(api: ApiClient, server: FakeServer) -> None:
    server.put("/api/v1/pods", "default", "p")
    with pytest.raises(AlreadyExists):
        await api.create(PODS, POD)
    with pytest.raises(Conflict):
        await api.put(f"{PODS}/p", {"metadata": {"name": "p", "resourceVersion": "1"}})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(code=400, reason="BadRequest"), Invalid),
        (Answer(code=403, reason="Forbidden"), Forbidden),
        (Answer(code=404, reason="NotFound"), NotFound),
        (Answer(code=404, raw=b"404 page not found\n"), NotServed),
        (Answer(code=410, reason="Expired"), Gone),
        (Answer(code=413), TooLarge),
        (Answer(code=422, reason="Invalid"), Invalid),
        (Answer(code=429), Throttled),
        (Answer(code=500, reason="InternalError"), ServerError),
        (Answer(code=502, raw=b"<html>bad gateway</html>"), ServerError),
        (Answer(code=503), ServerError),
        (Answer(code=504, reason="Timeout"), ServerError),
        (Answer(code=500, message="etcdserver: request is too large"), TooLarge),
        (Answer(code=405, reason="MethodNotAllowed"), ApiError),
    ],
)
async def test_each_refusal_has_its_error(
    api: ApiClient, server: FakeServer, answer: Answer, error: type[ApiError]
) -> None:
    server.inject(answer)
    with pytest.raises(error) as caught:
        await api.create(PODS, POD)
    assert (type(caught.value), caught.value.code, caught.value.verb) == (error, answer.code, "POST")


async def test_throttling_says_for_how_long(api: ApiClient, server: FakeServer) -> None:
    server.inject(Answer(code=429, retry_after="7"))
    with pytest.raises(Throttled) as caught:
        await api.get(PODS)
    assert caught.value.retry_after == 7.0


async def test_a_write_is_sent_once_whatever_happens(api: ApiClient, server: FakeServer) -> None:
    for fault in (LostAnswer(), Answer(code=429), Answer(code=503)):
        server.inject(fault, verb="POST")
        with pytest.raises(ApiError):
            await api.create(PODS, POD)
    assert server.count("POST") == 3


async def test_a_lost_answer_is_unreachable_though_the_write_took_effect(api: ApiClient, server: FakeServer) -> None:
    server.inject(LostAnswer())
    with pytest.raises(Unreachable):
        await api.create(PODS, POD)
    assert server.get("/api/v1/pods", "default", "p") is not None


async def test_a_slow_answer_is_given_up(api: ApiClient, server: FakeServer) -> None:
    server.inject(Slow(seconds=5))
    with pytest.raises(Unreachable):
        await api.get(PODS, timeout_s=0.05)


async def test_a_refused_connection_is_unreachable(server: FakeServer, kubeconfig: Path) -> None:
    (kubeconfig.parent / "token").write_text("first")
    credentials = load_credentials(kubeconfig=kubeconfig, context=None)
    credentials.server = "http://127.0.0.1:9"
    async with ApiClient(credentials, user_agent="test") as api:
        with pytest.raises(Unreachable):
            await api.get(PODS)


async def test_a_renewed_token_is_found_and_the_request_repeated(
    api: ApiClient, server: FakeServer, kubeconfig: Path
) -> None:
    server.token = "first"
    await api.get(PODS)
    server.token = "second"
    (kubeconfig.parent / "token").write_text("second\n")
    await api.create(PODS, POD)
    assert server.count("POST") == 2


async def test_a_token_that_stays_refused_is_an_error(api: ApiClient, server: FakeServer) -> None:
    server.token = "unknown"
    with pytest.raises(Unauthorized):
        await api.get(PODS)
    assert server.count("GET") == 2


async def test_a_lent_session_follows_the_token_and_cannot_close_ours(
    api: ApiClient, server: FakeServer, kubeconfig: Path
) -> None:
    lent = api.lend_session()
    server.token = "second"
    (kubeconfig.parent / "token").write_text("second")
    await api.get(PODS)
    async with lent.get(server.url + PODS) as response:
        assert response.status == 200
    await lent.close()
    await api.get(PODS)


async def test_the_servers_clock_is_learnt_from_its_answers(api: ApiClient, server: FakeServer) -> None:
    server.date = "Wed, 01 Jan 2031 10:00:00 GMT"
    await api.get(PODS)
    assert api.clock.now().strftime("%Y-%m-%d %H:%M:0") == "2031-01-01 10:00:0"


async def test_the_observer_is_told_of_each_request(server: FakeServer, kubeconfig: Path) -> None:
    told: list[tuple[str, str, int]] = []
    (kubeconfig.parent / "token").write_text("first")
    credentials = load_credentials(kubeconfig=kubeconfig, context=None)
    async with ApiClient(
        credentials, user_agent="test", observer=lambda verb, template, code, _: told.append((verb, template, code))
    ) as api:
        await api.create(PODS, POD)
        server.inject(LostAnswer())
        with pytest.raises(Unreachable):
            await api.merge_patch(f"{PODS}/p/status", {})
    assert told == [("POST", "pods", 201), ("PATCH", "pods/status", 0)]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/default/pods", "pods"),
        ("/api/v1/namespaces/default/pods/p", "pods"),
        ("/api/v1/namespaces/default/pods/p/status", "pods/status"),
        ("/api/v1/namespaces/default", "namespaces"),
        ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/j/status", "jobs/status"),
        ("/apis/batch.volcano.sh/v1alpha1/jobs", "jobs"),
        ("/version", "/version"),
        ("/readyz", "/readyz"),
    ],
)
def test_a_path_is_told_by_its_resource(path: str, template: str) -> None:
    assert path_template(path) == template


async def lines_of(api: ApiClient, number: int, *, silence_s: float = 20.0) -> list[bytes]:
    found: list[bytes] = []
    async with aclosing(api.stream("/api/v1/pods", {"watch": "1"}, silence_s=silence_s)) as chunks:
        async for lines in chunks:
            found += lines
            if len(found) >= number:
                break
    return found


async def test_a_stream_yields_whole_lines_however_they_are_cut(api: ApiClient, server: FakeServer) -> None:
    reading = asyncio.create_task(lines_of(api, 4))
    await until(lambda: server.watching == 1)
    for piece in (b"on", b"e\ntwo\nth", b"r", b"ee", b"\n", b"four\n"):
        server.say(piece)
    assert await reading == [b"one", b"two", b"three", b"four"]


async def test_a_silent_stream_is_unreachable(api: ApiClient, server: FakeServer) -> None:
    with pytest.raises(Unreachable):
        await lines_of(api, 1, silence_s=0.05)


async def test_a_stream_that_is_cut_is_unreachable(api: ApiClient, server: FakeServer) -> None:
    reading = asyncio.create_task(lines_of(api, 1))
    await until(lambda: server.watching == 1)
    server.cut_watches()
    with pytest.raises(Unreachable):
        await reading


async def test_a_refused_stream_has_its_error_and_renews_credentials(
    api: ApiClient, server: FakeServer, kubeconfig: Path
) -> None:
    server.token = "second"
    (kubeconfig.parent / "token").write_text("second")
    server.inject(Answer(code=410, reason="Expired"))
    with pytest.raises(Gone):
        await lines_of(api, 1)


async def test_nothing_is_left_open(server: FakeServer, kubeconfig: Path) -> None:
    (kubeconfig.parent / "token").write_text("first")
    async with ApiClient(load_credentials(kubeconfig=kubeconfig, context=None), user_agent="test") as api:
        lent = api.lend_session()
        await api.get(PODS)
    assert isinstance(lent, aiohttp.ClientSession)
    assert lent.closed

"""The informer: it comes to know the truth again after every fault. What replaces what in the store is left out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.kube.conftest import until
from tests.unit.kube.fake_server import Answer, FakeServer
from tests.unit.kube.items import Item, decode, item

from vcjob.kube import informer as module
from vcjob.kube.client import ApiClient
from vcjob.kube.forms import JsonForm
from vcjob.kube.informer import Informer
from vcjob.kube.store import Key

PODS = "/api/v1/pods"

Following = Callable[..., Any]


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BACKOFF_BASE_S", 0.01)
    monkeypatch.setattr(module, "_BACKOFF_CAP_S", 0.05)


class Seen(list[tuple[str, int | None, int | None]]):
    """What the listener was told: name, old value, new value."""

    def __call__(self, key: Key, old: Item | None, new: Item | None) -> None:
        self.append((key[1], old.value if old else None, new.value if new else None))


@asynccontextmanager
async def following(api: ApiClient, **options: Any) -> AsyncIterator[tuple[Informer[Item], Seen]]:
    seen = Seen()
    informer: Informer[Item] = Informer(api, PODS, form=JsonForm(decode), on_change=seen, **options)
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), 20)
        yield informer, seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(informer: Informer[Item]) -> set[str]:
    return {each.key[1] for each in informer.store}


async def caught_up(server: FakeServer, informer: Informer[Item]) -> None:
    await until(
        lambda: (
            {(o["metadata"]["name"], o["value"]) for o in server.objects(PODS)}
            == {(each.key[1], each.value) for each in informer.store}
        )
    )


async def test_it_lists_and_then_follows(api: ApiClient, server: FakeServer) -> None:
    server.put(PODS, "default", "a", value=1)
    async with following(api) as (informer, seen):
        assert names(informer) == {"a"}
        server.put(PODS, "default", "b", value=1)
        server.put(PODS, "default", "a", value=2)
        server.remove(PODS, "default", "b")
        await until(lambda: len(seen) == 4)
    assert seen == [("a", None, 1), ("b", None, 1), ("a", 1, 2), ("b", 1, None)]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"kind":"NodeList","metadata":{"resourceVersion":"999"},"items":[]}',
        b'{"kind":"Pod","metadata":{"resourceVersion":"999","name":"a","uid":"u"}}',
        b'{"kind":"PodList","metadata":{"resourceVersion":"999"},"items":null}',
    ],
)
async def test_nothing_is_forgotten_for_a_list_of_something_else(
    api: ApiClient, server: FakeServer, answer: bytes
) -> None:
    server.put(PODS, "default", "a", value=1)
    async with following(api) as (informer, seen):
        server.compact()
        server.inject(Answer(code=200, raw=answer), verb="GET", times=2)
        server.put(PODS, "default", "b", value=1)
        server.compact()
        server.cut_watches()
        await until(lambda: server.count("GET", "pods") >= 4 and names(informer) == {"a", "b"})
    assert seen == [("a", None, 1), ("b", None, 1)]


async def test_the_first_list_is_taken_from_the_cache_and_bookmarks_are_asked_for(
    api: ApiClient, server: FakeServer
) -> None:
    async with following(api, params={"labelSelector": "app=x"}):
        await server.wait_for_calls("WATCH", 1)
    assert server.calls[0][1] == f"{PODS}?labelSelector=app%3Dx&resourceVersion=0"
    assert "allowWatchBookmarks=true" in server.calls[1][1]


async def test_only_what_matches_the_selector_is_kept(api: ApiClient, server: FakeServer) -> None:
    server.put(PODS, "default", "other", value=1)
    async with following(api, params={"labelSelector": "app=x"}) as (_, seen):
        server.put(PODS, "default", "ours", value=1, metadata={"labels": {"app": "x"}})
        await until(lambda: len(seen) == 1)
        server.put(PODS, "default", "ours", value=2)
        await until(lambda: len(seen) == 2)
    assert seen == [("ours", None, 1), ("ours", 1, None)]


async def test_an_ordinary_end_goes_on_from_where_it_was(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, _):
        await until(lambda: server.watching == 1)
        server.end_watches()
        server.put(PODS, "default", "a", value=1)
        await caught_up(server, informer)
        assert (informer.stats.lists, server.count("GET")) == (1, 1)


async def test_a_bookmark_moves_the_version_on(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, _):
        await until(lambda: server.watching == 1)
        for _ in range(50):
            server.put("/api/v1/secrets", "default", "s", value=1)
        server.bookmark()
        await until(lambda: informer.stats.bookmarks == 1)
        server.compact()
        server.end_watches()
        await server.wait_for_calls("WATCH", 2)
        await until(lambda: server.watching == 1)
        assert informer.relists == 0


async def test_a_version_that_is_too_old_is_listed_anew_and_the_vanished_are_deleted(
    api: ApiClient, server: FakeServer
) -> None:
    server.put(PODS, "default", "stays", value=1)
    server.put(PODS, "default", "vanishes", value=1)
    async with following(api) as (informer, seen):
        await until(lambda: server.watching == 1)
        server.inject(Answer(code=503), verb="WATCH")  # blind for a moment
        server.cut_watches()
        server.remove(PODS, "default", "vanishes")
        server.put(PODS, "default", "appears", value=1)
        server.compact()
        await caught_up(server, informer)
        assert informer.relists == 1
        assert ("vanishes", 1, None) in seen


async def test_a_new_list_is_never_older_than_what_was_seen(api: ApiClient, server: FakeServer) -> None:
    server.put(PODS, "default", "a", value=1)
    async with following(api):
        await until(lambda: server.watching == 1)
        server.compact()
        version = server.version
        server.put(PODS, "default", "a", value=2)
        server.compact()
        server.cut_watches()
        await server.wait_for_calls("GET", 3)  # the second one asks only how far the server has come
    assert any(
        path.endswith((f"resourceVersion={version}", f"resourceVersion={version + 1}"))
        for verb, path in server.calls[2:]
        if verb == "GET"
    )


async def test_a_cache_that_is_behind_is_passed_by(api: ApiClient, server: FakeServer) -> None:
    async with following(api):
        await until(lambda: server.watching == 1)
        server.inject(Answer(code=410, reason="Expired"), verb="WATCH")
        server.inject(
            Answer(code=504, reason="Timeout", message="Too large resource version: 9, current: 8"), verb="GET"
        )
        server.end_watches()
        await server.wait_for_calls("GET", 3)
    assert [path for verb, path in server.calls if verb == "GET"][2] == PODS


@pytest.mark.parametrize("compacted", [False, True], ids=["a watch would be silent", "all is listed anew"])
async def test_a_server_that_went_back_ends_it(api: ApiClient, server: FakeServer, compacted: bool) -> None:
    informer: Informer[Item] = Informer(api, PODS, form=JsonForm(decode), on_change=Seen())
    task = asyncio.create_task(informer.run())
    await until(lambda: server.watching == 1)
    server.put(PODS, "default", "a", value=1)
    await until(lambda: "a" in names(informer))
    if compacted:
        server.inject(Answer(code=410, reason="Expired"), verb="WATCH")
        server.inject(Answer(code=504, message="Too large resource version: 101, current: 60"), verb="GET")
        server.end_watches()
    else:
        server.cut_watches()
    server.version = 60
    with pytest.raises(ExceptionGroup) as found:
        await asyncio.wait_for(task, 20)
    assert "went back: /api/v1/pods has version 60 after 101" in str(found.value.exceptions[0])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(code=429, retry_after="1"), id="throttled with a time"),
        pytest.param(Answer(code=429), id="throttled"),
        pytest.param(Answer(code=500), id="500"),
        pytest.param(Answer(code=503, raw=b"<html>"), id="503 of a proxy"),
        pytest.param(Answer(code=403, reason="Forbidden"), id="forbidden"),
        pytest.param(Answer(code=401), id="unauthorized"),
        pytest.param(Answer(code=200, raw=b"not json"), id="an answer that is no JSON"),
    ],
)
@pytest.mark.parametrize("verb", ["GET", "WATCH"])
async def test_it_heals_from_refusals(api: ApiClient, server: FakeServer, verb: str, answer: Answer) -> None:
    server.put(PODS, "default", "a", value=1)
    server.inject(answer, verb=verb, times=3)
    async with following(api) as (informer, _):
        server.put(PODS, "default", "b", value=1)
        await caught_up(server, informer)


async def test_it_heals_from_a_connection_that_breaks_within_a_line(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, _):
        await until(lambda: server.watching == 1)
        bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100"}}}\n'
        server.say(bookmark + b'{"type":"ADDED","object":{"metadata":{"name":"half')
        await until(lambda: informer.stats.bookmarks == 1)
        server.cut_watches()
        server.put(PODS, "default", "whole", value=1)
        await caught_up(server, informer)
        assert informer.stats.undecodable == 0


async def test_it_heals_from_silence(api: ApiClient, server: FakeServer) -> None:
    server.silent = True
    async with following(api, silence_s=0.1) as (informer, _):
        await until(lambda: server.watching == 1)
        server.put(PODS, "default", "unheard", value=1)  # half open: the server believes to have told us
        await server.wait_for_calls("WATCH", 2)
        server.silent = False
        await caught_up(server, informer)


async def test_it_heals_from_an_error_event(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, _):
        await until(lambda: server.watching == 1)
        server.say(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd has no leader"}}\n')
        await server.wait_for_calls("WATCH", 2)
        server.put(PODS, "default", "a", value=1)
        await caught_up(server, informer)
        assert informer.relists == 0


async def test_control_events_are_known_in_any_spelling(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, _):
        await until(lambda: server.watching == 1)
        server.say(b'{ "type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "100"}}}\n')
        server.say(b'{ "type": "ERROR", "object": {"code": 410}}\n')
        await server.wait_for_calls("GET", 2)
        assert (informer.stats.bookmarks, informer.stats.undecodable) == (1, 0)


async def test_one_malformed_object_hides_no_other(api: ApiClient, server: FakeServer) -> None:
    server.put(PODS, "default", "bad", value="not a number")
    server.put(PODS, "default", "good", value=1)
    async with following(api) as (informer, _):
        server.put(PODS, "default", "bad2", value=None)
        server.put(PODS, "default", "good2", value=1)
        await until(lambda: names(informer) == {"good", "good2"})
        assert informer.stats.undecodable == 2


async def test_an_object_that_can_no_longer_be_read_stays_until_it_is_gone(api: ApiClient, server: FakeServer) -> None:
    server.put(PODS, "default", "a", value=1)
    async with following(api) as (informer, _):
        server.put(PODS, "default", "a", value="not a number")
        await until(lambda: informer.stats.undecodable == 1)
        server.inject(Answer(code=410), verb="WATCH")
        server.cut_watches()
        await until(lambda: informer.relists == 1)
        assert names(informer) == {"a"}
        server.remove(PODS, "default", "a")
        await until(lambda: not names(informer))


async def test_a_kind_that_does_not_exist_is_waited_for_and_told_once(
    api: ApiClient, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.unknown.add("pods")
    with caplog.at_level(logging.WARNING):
        async with following(api) as (informer, _):
            assert informer.fault
            await server.wait_for_calls("GET", 4)
            server.unknown.clear()
            server.put(PODS, "default", "a", value=1)
            await caught_up(server, informer)
            assert not informer.fault
    assert len([record for record in caplog.records if record.name == module.__name__]) == 1


async def test_each_namespace_has_a_stream_and_the_others_stay_out(api: ApiClient, server: FakeServer) -> None:
    for namespace in ("one", "two", "three"):
        server.put(PODS, namespace, f"in-{namespace}", value=1)
    async with following(api, namespaces=("one", "two")) as (informer, _):
        assert names(informer) == {"in-one", "in-two"}
        await until(lambda: server.watching == 2)
        server.inject(Answer(code=410, reason="Expired"), verb="WATCH", path="/namespaces/one/")
        server.cut_watches()
        server.remove(PODS, "one", "in-one")
        await until(lambda: names(informer) == {"in-two"})


async def test_our_own_write_is_known_at_once_and_its_echo_is_no_news(api: ApiClient, server: FakeServer) -> None:
    async with following(api) as (informer, seen):
        await until(lambda: server.watching == 1)
        server.silent = True
        made = server.put(PODS, "default", "a", value=1)
        server.silent = False
        version, uid = int(made["metadata"]["resourceVersion"]), made["metadata"]["uid"]
        informer.store.put(item("a", version, uid=uid, value=1))
        server.end_watches()  # the next one replays what was not heard
        server.put(PODS, "default", "b", value=1)
        await caught_up(server, informer)
    assert seen == [("a", None, 1), ("b", None, 1)]


async def test_a_long_list_lets_others_run(api: ApiClient, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLICE_S", 0.0)
    for index in range(200):
        server.put(PODS, "default", f"p{index}", value=1)
    most = 0

    async with asyncio.timeout(20), following(api) as (informer, seen):
        assert len(informer.store) == 200
        for index in range(200):
            server.put(PODS, "default", f"p{index}", value=2)
        before = len(seen)
        while len(seen) < 400:
            await asyncio.sleep(0)
            most, before = max(most, len(seen) - before), len(seen)
    assert most <= 2

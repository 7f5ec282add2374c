"""The rule behind each route, with a cluster to look things up in. The rules themselves are in tests/unit/admission."""

import threading
from typing import Any

import pytest
from tests.unit.admission.builders import group, job, queue
from tests.unit.kube.fake_server import Answer, FakeServer
from tests.unit.webhook.builders import QUEUES, review_body, review_of_group, review_of_queue

from vcjob.admission.defaulting import default_job
from vcjob.admission.queue_rules import QueuePolicy
from vcjob.kube.client import ApiClient
from vcjob.webhook import namespaces, queues, rules
from vcjob.webhook.namespaces import Namespaces
from vcjob.webhook.queues import Queues
from vcjob.webhook.review import Verdict, read_review
from vcjob.webhook.routes import (
    MUTATE_JOBS,
    MUTATE_PODGROUPS,
    MUTATE_QUEUES,
    ROUTES,
    VALIDATE_JOBS,
    VALIDATE_PODGROUPS,
    VALIDATE_QUEUES,
    Route,
)
from vcjob.webhook.rules import Cluster, make_rules

NAMESPACES = "/api/v1/namespaces"

Raw = dict[str, Any]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for these answers, and a starved machine may need longer for them than an API server waits."""
    for module in (namespaces, queues):
        monkeypatch.setattr(module, "_TIMEOUT_S", 60.0)


async def decide(api: ApiClient, route: Route, body: bytes, *, check_queues: bool = True) -> Verdict:
    """Return what the rule of a route says to a request."""
    cluster = Cluster(queues=Queues(api, on_failure=lambda: None), namespaces=Namespaces(api))
    found = make_rules(cluster, scheduler="volcano", check_queues=check_queues, policy=QueuePolicy())
    return await found[route](read_review(body))


def test_every_route_has_its_rule(api: ApiClient):
    cluster = Cluster(queues=Queues(api, on_failure=lambda: None), namespaces=Namespaces(api))
    assert make_rules(cluster, scheduler="s", check_queues=True, policy=QueuePolicy()).keys() == set(ROUTES)


@pytest.mark.parametrize(
    ("name", "check_queues", "fragment"),
    [
        pytest.param("family", True, "can only submit job to leaf queue", id="a queue with children"),
        pytest.param("family", False, "", id="unchecked"),
        pytest.param("default", True, "", id="open"),
    ],
)
async def test_a_job_is_asked_for_its_queue(api: ApiClient, name: str, check_queues: bool, fragment: str):
    new = default_job(job().spec(queue=name).make())
    denial = (await decide(api, VALIDATE_JOBS, review_body(new=new), check_queues=check_queues)).denial
    assert fragment in denial
    assert bool(fragment) == bool(denial)


@pytest.mark.parametrize("route", [MUTATE_JOBS, VALIDATE_JOBS], ids=lambda route: route.name)
async def test_a_huge_job_is_judged_beside_the_event_loop(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, route: Route
):
    judges: list[threading.Thread] = []

    def judge(*_: Any, **__: Any) -> Verdict:
        judges.append(threading.current_thread())
        return Verdict()

    for name in ("mutate_new", "judge_new"):
        monkeypatch.setattr(rules, name, judge)
    await decide(api, route, review_body(new=job().make()))
    await decide(api, route, review_body(new=job().pod(subdomain="x" * 100_000).make()))
    assert [thread is threading.main_thread() for thread in judges] == [True, False]


@pytest.mark.parametrize(
    ("new", "check_queues", "fragment"),
    [
        pytest.param(group(queue="default"), True, "", id="open"),
        pytest.param(group(queue="closed"), True, "can only submit PodGroup to queue with state `Open`", id="closed"),
        pytest.param(group(queue="closed"), False, "", id="unchecked"),
        pytest.param(group(queue="closed", job="train"), True, "", id="of a Job that restarts"),
        pytest.param(group(queue="gone", job="train"), True, "unable to find queue: gone", id="gone"),
    ],
)
async def test_a_group_is_asked_for_its_queue(api: ApiClient, new: Raw, check_queues: bool, fragment: str):
    denial = (await decide(api, VALIDATE_PODGROUPS, review_of_group(new), check_queues=check_queues)).denial
    assert fragment in denial
    assert bool(fragment) == bool(denial)


async def test_a_group_gets_the_queue_of_its_namespace(api: ApiClient, server: FakeServer):
    annotations = {"scheduling.volcano.sh/queue-name": "science"}
    server.put(NAMESPACES, "", "team", metadata={"annotations": annotations})
    (operation,) = (await decide(api, MUTATE_PODGROUPS, review_of_group(group()))).patch
    assert (operation["path"], operation["value"]) == ("/spec/queue", "science")


async def test_a_group_with_a_queue_costs_no_look_at_its_namespace(api: ApiClient, server: FakeServer):
    assert await decide(api, MUTATE_PODGROUPS, review_of_group(group(queue="own"))) == Verdict()
    assert server.count("GET", NAMESPACES) == 0


@pytest.mark.parametrize("fault", [Answer(code=500), Answer(code=404), Answer(code=200, raw=b"rubbish")])
async def test_a_namespace_that_cannot_be_read_changes_nothing(api: ApiClient, server: FakeServer, fault: Answer):
    server.inject(fault, verb="GET", path=NAMESPACES)
    assert await decide(api, MUTATE_PODGROUPS, review_of_group(group())) == Verdict()


async def test_a_new_queue_gets_its_defaults(api: ApiClient):
    patch = (await decide(api, MUTATE_QUEUES, review_of_queue(new={"metadata": {"name": "q"}, "spec": {}}))).patch
    assert {operation["path"] for operation in patch} == {"/spec/weight", "/spec/reclaimable"}


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        pytest.param(review_of_queue(new=queue(parent="gone")), "unable to find parent queue: gone", id="new"),
        pytest.param(
            review_of_queue("UPDATE", old=queue("child", parent="family"), new=queue("child", parent="child")),
            "a queue can not be its own parent",
            id="changed",
        ),
        pytest.param(review_of_queue("DELETE", old=queue("family")), "has 1 child queues: child", id="removed"),
        pytest.param(review_of_queue("DELETE", old=queue("child")), "", id="a leaf goes"),
    ],
)
async def test_a_queue_is_judged_with_the_others(api: ApiClient, body: bytes, fragment: str):
    denial = (await decide(api, VALIDATE_QUEUES, body)).denial
    assert fragment in denial
    assert bool(fragment) == bool(denial)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(code=403),
        Answer(code=200, raw=b"rubbish"),
        Answer(code=200, raw=b'{"kind":"NodeList","metadata":{"resourceVersion":"7"},"items":[]}'),
        Answer(code=200, raw=b'{"kind":"QueueList","metadata":{"resourceVersion":"7"},"items":[{"spec":{}}]}'),
    ],
)
async def test_without_a_list_a_queue_is_judged_alone(api: ApiClient, server: FakeServer, answer: Answer):
    server.inject(answer, verb="GET", path=QUEUES)
    assert await decide(api, VALIDATE_QUEUES, review_of_queue(new=queue(parent="gone"))) == Verdict()
    assert (await decide(api, VALIDATE_QUEUES, review_of_queue("DELETE", old=queue("root")))).denial

"""What is known of the Queues, against an API server that is slow, silent, or does not know them."""

import asyncio

import pytest
from tests.unit.kube.fake_server import Answer, FakeServer, Slow
from tests.unit.webhook.builders import QUEUES

from vcjob.admission.problem import Problem
from vcjob.admission.queue_tree import QueueTree
from vcjob.admission.queues import check_queue
from vcjob.kube.client import ApiClient
from vcjob.webhook.queues import Queues


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def queues(api: ApiClient, failures: list[str]) -> Queues:
    return Queues(api, on_failure=lambda: failures.append("failed"))


async def find_problem(queues: Queues, name: str) -> Problem | None:
    """Ask whether a Queue takes a Job."""

    def judge(tree: QueueTree) -> Problem | None:
        return check_queue(tree.queues.get(name), name, children=len(tree.children(name)))

    return await queues.find_problem(judge)


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("default", ""),
        ("child", ""),
        ("gone", "unable to find job queue: gone"),
        ("root", "can not submit job to root queue"),
        ("family", "queue `family` has 1 child queues"),
    ],
)
async def test_a_queue_takes_a_job_or_says_why_not(queues: Queues, name: str, fragment: str):
    problem = await find_problem(queues, name)
    assert fragment in str(problem) if fragment else problem is None


async def test_many_jobs_at_once_cost_one_list(queues: Queues, server: FakeServer):
    await asyncio.gather(*(find_problem(queues, "default") for _ in range(50)))
    assert server.count("GET", QUEUES) == 1


async def test_what_was_read_before_never_denies(queues: Queues, server: FakeServer):
    assert await find_problem(queues, "young") is not None
    server.put(QUEUES, "", "young")
    assert await find_problem(queues, "young") is None


async def test_a_change_of_queues_is_judged_by_what_is_there_now(queues: Queues, server: FakeServer):
    await queues.read()
    server.put(QUEUES, "", "young")
    tree = await queues.read()
    assert tree is not None
    assert "young" in tree.queues


@pytest.mark.parametrize(
    "fault", [Answer(code=500), Answer(code=403), Answer(code=200, raw=b"rubbish"), Slow(seconds=3)]
)
async def test_trouble_lets_jobs_in_and_is_counted(
    queues: Queues, server: FakeServer, failures: list[str], fault: Answer | Slow
):
    server.inject(fault, verb="GET", path=QUEUES)
    assert await find_problem(queues, "gone") is None
    assert failures == ["failed"]


async def test_what_was_read_before_a_change_lets_nobody_in_after_it(queues: Queues, server: FakeServer):
    server.put(QUEUES, "", "young")
    await queues.read()
    server.put(QUEUES, "", "grandchild", spec={"parent": "young"})
    assert "has 1 child queues" in str(await find_problem(queues, "young"))


async def test_what_cannot_be_read_is_no_empty_list(queues: Queues, server: FakeServer):
    server.inject(Answer(code=403), verb="GET", path=QUEUES)
    assert await queues.read() is None


async def test_a_cluster_without_queues_takes_every_job(queues: Queues, server: FakeServer, failures: list[str]):
    server.unknown.add("queues")
    assert await find_problem(queues, "gone") is None
    assert failures == []


async def test_one_who_gives_up_leaves_the_others_their_answer(queues: Queues, server: FakeServer):
    server.inject(Slow(seconds=0.2), verb="GET", path=QUEUES)
    impatient, patient = (asyncio.create_task(find_problem(queues, "default")) for _ in range(2))
    await server.wait_for_calls("GET", 1, QUEUES)
    impatient.cancel()
    assert await patient is None

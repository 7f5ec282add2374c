"""The limiter: whose turn it is, and how the limit follows the server. Simulated time throughout."""

import asyncio
from collections import Counter

import pytest
from tests.unit.kube.conftest import SimulatedLoop, simulate

from vcjob.kube import limiter as module
from vcjob.kube.errors import ApiError, Conflict, ServerError, Throttled, Unreachable
from vcjob.kube.limiter import FairLimiter


@pytest.fixture(autouse=True)
def loop_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "steady", lambda: asyncio.get_running_loop().time())


def throttled(seconds: float | None = None) -> Throttled:
    error = Throttled("too many requests", code=429)
    error.retry_after = seconds
    return error


async def write(limiter: FairLimiter, key: str, *, takes_s: float, done: list[str], namespace: str = "ns") -> None:
    async with limiter.slot((namespace, key)):
        await asyncio.sleep(takes_s)
        done.append(key)


def test_no_more_are_in_flight_than_the_limit_says() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter = FairLimiter(start=4)
        most = 0

        async def one(key: str) -> None:
            nonlocal most
            async with limiter.slot(("ns", key)):
                most = max(most, limiter.in_flight)
                await asyncio.sleep(2.0)  # slow: the limit does not grow

        await asyncio.gather(*(one(f"job-{index % 7}") for index in range(40)))
        assert (most, limiter.in_flight, limiter.waiting) == (4, 0, 0)

    simulate(story)


def test_ten_thousand_writes_delay_a_single_one_by_one_turn() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(start=4, highest=4), []  # type: FairLimiter, list[str]
        big = [asyncio.create_task(write(limiter, "big", takes_s=0.01, done=done)) for _ in range(10_000)]
        await asyncio.sleep(1.005)  # in the midst of four
        began = loop.time()
        await write(limiter, "small", takes_s=0.01, done=done)
        assert loop.time() - began == pytest.approx(0.005 + 0.01)  # the rest of their turn, then its own
        await asyncio.gather(*big)

    simulate(story)


def test_a_thousand_jobs_of_one_namespace_delay_another_by_one_turn() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(start=4, highest=4), []  # type: FairLimiter, list[str]
        crowd = [asyncio.create_task(write(limiter, f"j{i}", takes_s=0.01, done=done)) for i in range(1000)]
        await asyncio.sleep(0.105)
        began = loop.time()
        await write(limiter, "small", takes_s=0.01, done=done, namespace="other")
        assert loop.time() - began == pytest.approx(0.005 + 0.01)
        await asyncio.gather(*crowd)

    simulate(story)


def test_a_namespace_is_busy_by_what_it_does_itself() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(start=4, highest=4), []  # type: FairLimiter, list[str]
        crowd = [asyncio.create_task(write(limiter, f"j{i}", takes_s=1.0, done=done)) for i in range(20)]
        await asyncio.sleep(0.5)
        assert (limiter.busy, limiter.busy_in("ns"), limiter.busy_in("other")) == (True, True, False)
        crowd[0].cancel()  # in flight
        crowd[19].cancel()  # waiting
        await asyncio.gather(*crowd, return_exceptions=True)
        assert (len(done), limiter.busy_in("ns"), dict(limiter._load)) == (18, False, {})

    simulate(story)


def test_keys_that_wait_are_served_in_turn() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(start=4, highest=4), []  # type: FairLimiter, list[str]
        amounts = {"a": 100, "b": 40, "c": 40}
        tasks = [
            asyncio.create_task(write(limiter, key, takes_s=0.1, done=done))
            for key, n in amounts.items()
            for _ in range(n)
        ]
        await asyncio.gather(*tasks)
        share = Counter(done[4:104])
        assert max(share.values()) - min(share.values()) <= 2

    simulate(story)


def test_those_who_give_up_waiting_cost_nobody_a_slot() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(start=4, highest=4), []  # type: FairLimiter, list[str]
        tasks = [asyncio.create_task(write(limiter, f"k{i % 3}", takes_s=1.0, done=done)) for i in range(60)]
        await asyncio.sleep(0.5)
        for task in tasks[1::2]:  # of those in flight and of those waiting
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (len(done), limiter.in_flight, limiter.waiting) == (30, 0, 0)
        await write(limiter, "later", takes_s=1.0, done=done)

    simulate(story)


def test_a_turn_that_comes_in_the_moment_of_giving_up_is_passed_on() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter = FairLimiter(start=4, highest=4, lowest=1)
        held = [limiter.slot(("ns", "holder")) for _ in range(4)]
        for slot in held:
            await slot.__aenter__()
        done: list[str] = []
        first = asyncio.create_task(write(limiter, "first", takes_s=0, done=done))
        second = asyncio.create_task(write(limiter, "second", takes_s=0, done=done))
        await asyncio.sleep(0)
        await held[0].__aexit__(None, None, None)  # gives the turn to first ...
        first.cancel()  # ... which leaves before it runs
        await asyncio.wait_for(second, 5)
        assert done == ["second"]

    simulate(story)


async def burst(limiter: FairLimiter, number: int, *, takes_s: float) -> None:
    done: list[str] = []
    await asyncio.gather(*(write(limiter, f"job-{index % 5}", takes_s=takes_s, done=done) for index in range(number)))


def test_the_limit_grows_while_answers_come_quickly_and_has_a_bound() -> None:
    async def story(loop: SimulatedLoop) -> list[int]:
        limiter = FairLimiter()
        limits = [limiter.limit]
        for number in (200, 2_000, 30_000):
            await burst(limiter, number, takes_s=0.05)
            limits.append(limiter.limit)
        return limits

    start, soon, later, end = simulate(story)
    assert start == 64
    assert start < soon < later < end == 128


def test_the_limit_does_not_grow_when_it_is_not_what_holds_back() -> None:
    async def story(loop: SimulatedLoop) -> int:
        limiter, done = FairLimiter(), []  # type: FairLimiter, list[str]
        for _ in range(2000):
            await write(limiter, "one-by-one", takes_s=0.01, done=done)
        return limiter.limit

    assert simulate(story) == 64


def test_slow_answers_lower_the_limit() -> None:
    async def story(loop: SimulatedLoop) -> int:
        limiter = FairLimiter()
        await burst(limiter, 2_000, takes_s=3.0)
        return limiter.limit

    assert simulate(story) < 20


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        pytest.param(throttled(), 32, id="429 halves"),
        pytest.param(ServerError("busy", code=503), 32, id="503 halves"),
        pytest.param(Unreachable("timed out"), 32, id="no answer halves"),
        pytest.param(ServerError("webhook", code=500), 64, id="500 says nothing of the load"),
        pytest.param(Conflict("modified", code=409), 64, id="a conflict says nothing of the load"),
    ],
)
def test_what_a_refusal_says_of_the_load(error: ApiError, limit: int) -> None:
    async def story(loop: SimulatedLoop) -> int:
        limiter = FairLimiter()
        with pytest.raises(ApiError):
            async with limiter.slot(("ns", "job")):
                raise error
        return limiter.limit

    assert simulate(story) == limit


def test_refusals_of_one_overload_halve_once_and_never_below_the_bound() -> None:
    async def story(loop: SimulatedLoop) -> list[int]:
        limiter = FairLimiter()
        limits = []
        for _ in range(6):
            for _ in range(30):
                limiter.report(throttled())
            limits.append(limiter.limit)
            await asyncio.sleep(1)
        return limits

    assert simulate(story) == [32, 16, 8, 4, 4, 4]


def test_everybody_waits_as_long_as_the_server_asks() -> None:
    async def story(loop: SimulatedLoop) -> None:
        limiter, done = FairLimiter(), []  # type: FairLimiter, list[str]
        limiter.report(throttled(7))
        began = loop.time()
        writing = asyncio.create_task(burst(limiter, 10, takes_s=0.0))
        await write(limiter, "job", takes_s=0.0, done=done)
        assert loop.time() - began == pytest.approx(7, abs=0.01)
        await writing
        assert limiter.paused_s == 0

    simulate(story)


def test_an_absurd_wish_of_the_server_is_bounded() -> None:
    async def story(loop: SimulatedLoop) -> float:
        limiter = FairLimiter()
        limiter.report(throttled(86_400))
        return limiter.paused_s

    assert simulate(story) == 60


def test_an_overloaded_server_is_found_and_used_to_its_measure() -> None:
    """A server that refuses beyond 20 at once: nearly all is done, most of the time near 20 are in flight."""

    async def story(loop: SimulatedLoop) -> tuple[int, float]:
        limiter = FairLimiter()
        inside = done = refused = 0

        async def one(key: str) -> None:
            nonlocal inside, done, refused
            while True:
                try:
                    async with limiter.slot(("ns", key)):
                        if inside >= 20:
                            refused += 1
                            raise throttled(1)
                        inside += 1
                        await asyncio.sleep(0.05)
                        inside -= 1
                        done += 1
                        return
                except Throttled:
                    continue

        await asyncio.gather(*(one(f"job-{index % 10}") for index in range(5_000)))
        return done, refused / done

    done, refused_share = simulate(story)
    assert done == 5_000
    assert refused_share < 0.05

"""The server's clock, from Date headers and steady time alone."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.kube import clock as module
from vcjob.kube.clock import ServerClock

START = datetime(2031, 1, 1, 10, 0, 0, tzinfo=UTC)


class World:
    """A server whose clock shows `START` at steady second 100, and a client that asks it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.ahead = timedelta()
        self.clock = ServerClock()
        monkeypatch.setattr(module, "steady", lambda: self.now)

    @property
    def truth(self) -> datetime:
        return START + self.ahead + timedelta(seconds=self.now - 100.0)

    @property
    def error_s(self) -> float:
        return (self.clock.now() - self.truth).total_seconds()

    def ask(self, *, takes_s: float = 0.02) -> None:
        sent = self.now
        self.now += takes_s / 2
        header = format_datetime(self.truth.replace(microsecond=0), usegmt=True)
        self.now += takes_s / 2
        self.clock.observe(header, sent=sent, received=self.now)

    def ask_often(self, seconds: float, *, each_s: float = 0.1) -> None:
        for _ in range(int(seconds / each_s)):
            self.now += each_s
            self.ask()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_without_an_answer_the_local_clock_serves() -> None:
    clock = ServerClock()
    assert abs((clock.now() - datetime.now(UTC)).total_seconds()) < 1


def test_one_answer_is_right_within_a_second(world: World) -> None:
    world.ask()
    assert abs(world.error_s) <= 0.6


def test_many_answers_are_right_within_a_tenth(world: World) -> None:
    world.ask_often(5)
    assert abs(world.error_s) < 0.1


def test_it_goes_on_between_answers(world: World) -> None:
    world.ask_often(5)
    world.now += 3600
    assert abs(world.error_s) < 0.1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_step_of_the_local_clock_does_not_matter(world: World, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    world.ask_often(5)
    before = world.clock.now()
    local = time.time()
    monkeypatch.setattr(module.time, "time", lambda: local + hours * 3600)
    assert world.clock.now() == before
    world.ask_often(5)
    assert abs(world.error_s) < 0.1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_jump_is_followed_within_seconds(world: World, hours: int) -> None:
    world.ask_often(5)
    world.ahead += timedelta(hours=hours)
    world.ask_often(5)
    assert abs(world.error_s) < 0.6


def test_one_wild_answer_is_not_believed(world: World) -> None:
    world.ask_often(5)
    world.clock.observe("Fri, 01 Jan 2021 00:00:00 GMT", sent=world.now, received=world.now)
    world.clock.observe("no date", sent=world.now, received=world.now)
    assert abs(world.error_s) < 0.1


def test_wild_answers_that_contradict_each_other_are_not_believed(world: World) -> None:
    world.ask_often(5)
    for year in (2011, 2021, 2031, 2012, 2022):
        world.now += 0.1
        world.clock.observe(f"Fri, 01 Jan {year} 00:00:00 GMT", sent=world.now, received=world.now)
    assert abs(world.error_s) < 0.1


def test_servers_that_disagree_a_little_give_something_between(world: World) -> None:
    for step in range(400):
        world.now += 0.1
        world.ahead = timedelta(seconds=1.5 * (step % 2))
        world.ask()
    world.ahead = timedelta(seconds=0.75)
    assert abs(world.error_s) < 1.2


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 0.5)), min_size=1, max_size=40))
def test_an_honest_server_is_never_misread_by_more_than_a_second_and_the_way(steps: list[tuple[float, float]]) -> None:
    """Whatever the rhythm of the answers: half a second for the header's resolution, and the time of the way."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = World(monkeypatch)
        for pause, takes in steps:
            world.now += pause
            world.ask(takes_s=takes)
            assert abs(world.error_s) <= 0.8

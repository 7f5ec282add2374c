"""Whose turn it is to be told: Warnings at once, the others when it is quiet or their patience is over."""

import pytest

from vcjob.kube.event_queue import EventQueue


class Surroundings:
    """A clock and a server, as the queue sees them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy = False
        self.queue = EventQueue[str](is_busy=lambda: self.busy, now=lambda: self.now)

    def taken(self) -> list[str]:
        """Take all whose turn it is."""
        return [item for item in iter(self.queue.take, None) if item is not None]


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


def test_warnings_go_first_and_each_line_by_its_time(around: Surroundings) -> None:
    for item, due in (("second", 2.0), ("first", 1.0), ("tomorrow", 86400.0)):
        around.queue.put(item, due=due, is_warning=False)
    around.queue.put("warning", due=3.0, is_warning=True)
    around.now = 3.0
    assert around.taken() == ["warning", "first", "second"]
    assert around.queue.wait_s() == 86397.0
    assert around.queue.take(all_are_due=True) == "tomorrow"
    assert (around.queue.wait_s(), len(around.queue)) == (None, 0)


def test_while_the_server_is_busy_only_warnings_are_told(around: Surroundings) -> None:
    around.busy = True
    around.queue.put("made", due=0.0, is_warning=False)
    around.queue.put("failed", due=0.0, is_warning=True)
    assert around.taken() == ["failed"]
    assert around.queue.wait_s() == pytest.approx(0.2)
    around.busy = False
    assert around.taken() == ["made"]


def test_nothing_gives_way_for_ever(around: Surroundings) -> None:
    around.busy = True
    around.queue.put("made", due=0.0, is_warning=False)
    around.now = 10.1
    assert around.taken() == ["made"]


def test_a_flood_of_news_leaves_room_for_warnings(around: Surroundings) -> None:
    around.busy = True
    room = [around.queue.put("made", due=0.0, is_warning=False) for _ in range(5000)]
    assert room.count(False) == 904
    assert around.queue.put("failed", due=0.0, is_warning=True)
    assert len(around.taken()) == 1 + 4096 - 2048
    assert around.queue.clear() == 2048

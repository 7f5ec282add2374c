"""A process that is deaf ends."""

import asyncio

import pytest

from vcjob.operator.watchdog import WatcherLost, watch_over
from vcjob.operator.watching import Watchers


async def watch(*faults: str, patience_s: float) -> int:
    """Watch over what has these faults, one a second, and then none; return how many times it was asked."""
    told = iter(faults)
    seconds = 0

    def now() -> float:
        return float(seconds)

    def find_fault() -> str:
        nonlocal seconds
        seconds += 1
        return next(told, "")

    guard = asyncio.create_task(watch_over(find_fault, patience_s=patience_s, every_s=0, now=now))
    for _ in range(100):
        await asyncio.sleep(0)
    guard.cancel()
    try:
        await guard
    except asyncio.CancelledError:
        pass
    return seconds


async def test_a_fault_that_stays_ends_the_process_with_its_sentence():
    with pytest.raises(WatcherLost, match="the watch of jobs has ended"):
        await watch(*["the watch of jobs has ended"] * 40, patience_s=30)


async def test_a_fault_that_goes_away_in_time_does_not():
    assert await watch(*["gone"] * 29, "", *["gone"] * 29, patience_s=30) > 90


async def test_a_watcher_that_ends_without_a_word_is_noticed():
    async def for_ever() -> None:
        await asyncio.Event().wait()

    watchers = Watchers(queues=False)
    tasks = [
        asyncio.create_task(for_ever(), name="watcher for jobs.v1alpha1.batch.volcano.sh@None"),
        asyncio.create_task(for_ever(), name="watcher for commands.v1alpha1.bus.volcano.sh@None"),
    ]
    assert watchers.find_dead() == watchers.find_missing() == ""
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    assert watchers.find_dead() == "the watch of jobs has ended"
    tasks[1].cancel()
    await asyncio.wait(tasks)


def test_a_watcher_that_hears_nothing_for_long_is_noticed(monkeypatch: pytest.MonkeyPatch):
    jobs, discovery = "/apis/batch.volcano.sh/v1alpha1/jobs", "/apis/batch.volcano.sh/v1alpha1"
    watchers = Watchers(queues=False)
    monkeypatch.setattr("vcjob.operator.watching.steady", lambda: 1000.0)
    assert watchers.find_deaf({jobs: 900.0, discovery: 1.0}) == ""
    assert watchers.find_deaf({jobs: 800.0}) == f"nothing was heard of {jobs} for 150 s"

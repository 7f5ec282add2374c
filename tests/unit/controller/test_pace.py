"""How often Jobs are looked at: at once when little happens, seldom when much does."""

import pytest

from vcjob.controller.pace import Pace


def run(pace: Pace, *, jobs: int, pods: int, seconds: float) -> int:
    """Have the Pods of so many Jobs move all the time; return how many looks there are."""
    due = dict.fromkeys(range(jobs), 0.0)
    alone = dict.fromkeys(range(jobs), 0.0)
    looks = 0
    for tick in range(int(seconds * 1000)):
        now = tick / 1000
        for job in range(jobs):
            if due[job] <= now and alone[job] <= now:
                looks += 1
                alone[job] = now + pace.take(now, pods=pods)
                due[job] = now + pace.delay(now)
    return looks


def test_nothing_waits_when_nothing_happened():
    pace = Pace()
    assert pace.delay(1000.0) == 0.0
    pace.take(1000.0, pods=1)
    assert pace.delay(1000.0) < 0.01


def test_a_job_is_left_alone_the_longer_the_more_happens():
    pace = Pace()
    assert pace.take(1000.0, pods=0) < 0.001
    for look in range(500):
        spacing = pace.take(1000.0 + look / 500, pods=0)
    assert spacing > 0.015


def test_looks_at_a_hundred_jobs_cost_a_tenth_of_a_core_at_most():
    assert run(Pace(), jobs=100, pods=10, seconds=6.0) / 6.0 * 350e-6 < 0.1


def test_no_job_is_looked_at_more_than_twice_a_second_when_all_move():
    assert run(Pace(), jobs=1000, pods=10, seconds=6.0) / 6.0 < 1000 * 2.1


@pytest.mark.parametrize(("jobs", "least"), [(1, 10), (10, 4), (100, 2)])
def test_each_job_is_looked_at_often_enough(jobs: int, least: int):
    assert run(Pace(), jobs=jobs, pods=10, seconds=4.0) / 4.0 / jobs >= least


def test_a_huge_job_does_not_delay_the_others():
    pace = Pace()
    for second in range(10):
        for half in (0.0, 0.5):
            assert pace.take(second + half, pods=10_000) == 0.5
    assert pace.delay(9.6) < 0.01

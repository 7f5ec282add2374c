"""Delays: tables and a law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.kube.backoff import patience, retry_delay, spread

chances = st.floats(0.0, 1.0, exclude_max=True)


@pytest.mark.parametrize(("attempt", "most"), [(0, 0.25), (1, 0.5), (4, 4.0), (8, 60.0), (10_000, 60.0)])
def test_it_doubles_up_to_the_cap(attempt: int, most: float) -> None:
    assert (retry_delay(attempt, chance=0.0), retry_delay(attempt, chance=1.0)) == (most / 2, most)


@given(st.integers(0, 200), chances)
def test_a_delay_is_in_the_upper_half_of_its_step(attempt: int, chance: float) -> None:
    """However chance falls: never zero, never above the cap, never below half of the doubled base."""
    full = retry_delay(attempt, chance=1.0)
    assert full / 2 <= retry_delay(attempt, chance=chance) <= full <= 60.0


def test_a_negative_attempt_is_refused() -> None:
    with pytest.raises(ValueError, match="counts from 0"):
        retry_delay(-1, chance=0.5)


@pytest.mark.parametrize(("waiting", "seconds"), [(0, 10.0), (1, 10.03), (1000, 40.0), (100_000, 60.0)])
def test_the_more_there_is_that_can_wait_the_longer_it_does(waiting: int, seconds: float) -> None:
    assert patience(waiting) == pytest.approx(seconds)


@given(chances)
def test_a_spread_stays_within_its_share(chance: float) -> None:
    """A fifth to either side."""
    assert 8.0 <= spread(10.0, chance=chance) <= 12.0

"""The status as the API holds it: read tolerantly, written canonically, the same after a round trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lifecycle.builders import NOW

from vcjob.api.job import Phase
from vcjob.lifecycle.status import Condition, Status, format_time, parse_time

counts = st.integers(0, 10**6)
times = st.integers(0, 4_000_000_000).map(float)
words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
statuses = st.builds(
    Status,
    phase=st.sampled_from(Phase),
    reason=words,
    message=words,
    last_transition=times,
    min_available=counts,
    pending=counts,
    running=counts,
    terminating=counts,
    task_counts=st.dictionaries(words, st.dictionaries(words, st.integers(1, 99), min_size=1), max_size=2),
    version=counts,
    retry_count=counts,
    running_duration=words,
    controlled=st.dictionaries(words, words, max_size=2),
    conditions=st.lists(st.builds(Condition, status=words, last_transition=times), max_size=2).map(tuple),
)


@given(statuses)
def test_what_is_written_is_read_again(status):
    """Nothing is lost between two passes."""
    assert Status.read(status.write()) == status


def test_zeros_are_left_out():
    assert Status(phase=Phase.PENDING, last_transition=NOW).write() == {
        "state": {"phase": "Pending", "lastTransitionTime": format_time(NOW)}
    }


@pytest.mark.parametrize(
    "raw",
    [
        None, [], "x", {"state": None}, {"state": {"phase": "Nonsense"}}, {"state": {"phase": 7}},
        {"conditions": [None, {}, 3]}, {"pending": "many"}, {"pending": True}, {"taskStatusCount": {"w": None}},
        {"controlledResources": {"a": 1}}, {"state": {"lastTransitionTime": "yesterday"}}, {"version": -1},
        {"version": 2**31 - 1}, {"retryCount": 2**31 - 1},
        {"state": {"lastTransitionTime": "9999-12-31T23:59:59-12:00"}},
        {"state": {"lastTransitionTime": "0001-01-01T00:00:00+12:00"}},
    ],
)  # fmt: skip
def test_what_nobody_understands_counts_as_empty(raw):
    assert Status.read(raw) == Status()


def test_times_are_read_in_any_form_of_rfc_3339():
    assert parse_time("2030-03-17T17:46:40Z") == parse_time("2030-03-17T18:46:40+01:00") == NOW
    assert parse_time("2030-03-17T17:46:40.000000Z") == NOW


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0999-05-06T07:08:09Z", "9999-12-31T23:59:59Z"])
def test_any_time_that_is_read_can_be_written(text: str):
    seconds = parse_time(text)
    assert seconds is not None
    assert format_time(seconds) == text


def test_a_phase_that_is_entered_again_has_one_condition_the_last():
    status = Status()
    for phase in (Phase.PENDING, Phase.RUNNING, Phase.PENDING):
        status = status.enter(phase, reason="R", message="m", now=NOW)
    assert [condition.status for condition in status.conditions] == ["Running", "Pending"]


def test_staying_in_a_phase_moves_no_time():
    status = Status().enter(Phase.PENDING, reason="A", message="a", now=NOW)
    later = status.enter(Phase.PENDING, reason="B", message="b", now=NOW + 9)
    assert (later.last_transition, later.conditions, later.reason) == (NOW, status.conditions, "B")

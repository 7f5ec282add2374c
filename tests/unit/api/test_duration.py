"""Durations; the expected spellings were printed by Go's time package."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.duration import Duration, InvalidDuration, parse_duration


@pytest.mark.parametrize(
    ("text", "printed", "seconds"),
    [
        ("0", "0s", 0),
        ("5s", "5s", 5),
        ("1m30s", "1m30s", 90),
        ("90s", "1m30s", 90),
        ("1.5h", "1h30m0s", 5400),
        ("300ms", "300ms", 0.3),
        ("63250ms", "1m3.25s", 63.25),
        ("+.5s", "500ms", 0.5),
        ("1.5us", "1.5µs", 1.5e-6),
        ("1.5µs", "1.5µs", 1.5e-6),
        ("1.5μs", "1.5µs", 1.5e-6),
        ("100ns", "100ns", 1e-7),
        ("-1m", "-1m0s", -60),
        ("48h", "48h0m0s", 172800),
    ],
)
def test_a_duration_is_read_and_printed(text: str, printed: str, seconds: float) -> None:
    duration = parse_duration(text)
    assert (str(duration), duration.seconds) == (printed, seconds)


@pytest.mark.parametrize("text", ["", "5", "1d", "s", "1 m", "1m 30s", ".s", "--1s", "١s", None, 5, True, "9999999h"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(InvalidDuration, match="is not a duration"):
        parse_duration(text)


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_printing_and_reading_gives_the_same_span(nanoseconds: int) -> None:
    assert parse_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


@given(st.text() | st.from_regex(r"[-+]?([0-9.]{0,4}(ns|us|ms|s|m|h|d)?){0,4}", fullmatch=True))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        parse_duration(text)
    except InvalidDuration:
        pass

"""Long steps are told, with their outcome."""

import io

import pytest

from vcjob.cluster.progress import Progress


def test_a_step_says_when_it_begins_and_ends():
    said = io.StringIO()
    with Progress(said).step("building it"):
        pass
    assert said.getvalue() == "building it …\nbuilding it: done after 0 s\n"


def test_a_step_that_fails_says_so():
    said = io.StringIO()
    with pytest.raises(ZeroDivisionError), Progress(said).step("dividing"):
        raise ZeroDivisionError
    assert said.getvalue().endswith("dividing: failed after 0 s\n")

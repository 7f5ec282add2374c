"""One command at a time."""

import io
from pathlib import Path

import pytest

from vcjob.cluster.errors import Busy
from vcjob.cluster.lock import locked
from vcjob.cluster.progress import Progress


def test_a_second_holder_waits_says_so_and_gives_up(tmp_path: Path):
    said = io.StringIO()
    refusal = pytest.raises(Busy, match="another vcjob command has been working on a thing")
    first = locked(tmp_path / "a.lock", what="a thing", wait_s=0, say=Progress(said))
    second = locked(tmp_path / "a.lock", what="a thing", wait_s=0, say=Progress(said))
    with first, refusal, second:
        raise AssertionError("two hold the lock")
    assert said.getvalue() == "another vcjob command works on a thing; waiting for it\n"


def test_a_holder_may_remove_the_file(tmp_path: Path):
    for _ in range(2):
        with locked(tmp_path / "a.lock", what="a thing", wait_s=0, say=Progress(io.StringIO())):
            (tmp_path / "a.lock").unlink()
    assert list(tmp_path.iterdir()) == []

"""What was told is undone, unless all went well."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from vcjob.cluster.guardian import Undo, undo_unless_done
from vcjob.cluster.processes import identify, is_alive


def line(undo: Undo) -> bytes:
    return msgspec.json.encode(undo) + b"\n"


@pytest.mark.parametrize(
    ("last", "is_left"), [pytest.param([], False, id="cut short"), pytest.param([b"done\n"], True, id="done")]
)
def test_files_folders_and_processes_go_only_when_the_pipe_was_cut(last: list[bytes], is_left: bool, tmp_path: Path):
    folder, file = tmp_path / "folder", tmp_path / "file"
    (folder / "deep").mkdir(parents=True)
    file.touch()
    with subprocess.Popen(["sleep", "60"]) as process:
        identity = identify(process.pid)
        assert identity
        undo_unless_done(
            [line(Undo(path=str(folder))), line(Undo(path=str(file))), line(Undo(process=identity)), *last]
        )
        assert (is_alive(identity), folder.exists(), file.exists()) == (is_left, is_left, is_left)
        process.kill()


def test_what_is_gone_already_is_no_error(tmp_path: Path):
    undo_unless_done([line(Undo(path=str(tmp_path / "never-made")))])

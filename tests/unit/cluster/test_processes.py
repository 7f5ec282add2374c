"""Processes are held until released, known by more than their pid, and end when told to."""

import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vcjob.cluster.processes import HeldProcess, ProcessId, identify, is_alive, start_held, stop_all

ENV = {"PATH": os.environ["PATH"]}
Start = Callable[..., HeldProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a shell script, held; it ends with the test."""
    started: list[ProcessId] = []

    def start_script(script: str) -> HeldProcess:
        held = start_held(("/bin/sh", "-c", script), folder=tmp_path, log=tmp_path / "log", env=ENV)
        started.append(held.id)
        return held

    yield start_script
    stop_all(started, patience_s=0)


def wait_for(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_held_process_does_nothing_before_it_is_released(start: Start, tmp_path: Path):
    held = start("echo done > $PWD/result")
    assert is_alive(held.id)
    assert not (tmp_path / "result").exists()
    held.release()
    wait_for((tmp_path / "result").exists)


def test_a_process_keeps_its_identity_when_it_becomes_its_command(start: Start):
    held = start("exec sleep 60")
    held.release()
    wait_for(lambda: "sleep" in Path(f"/proc/{held.id.pid}/comm").read_text())
    assert identify(held.id.pid) == held.id


def test_a_held_process_whose_starter_is_killed_ends_by_itself(tmp_path: Path):
    script = (
        "import os, signal; from pathlib import Path; from vcjob.cluster.processes import start_held\n"
        f"held = start_held(('touch', 'result'), folder=Path({str(tmp_path)!r}), log=Path('/dev/null'), env={{}})\n"
        "print(held.id.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([os.sys.executable, "-c", script], capture_output=True, text=True, check=False)  # type: ignore[attr-defined]
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: identify(int(done.stdout)) is None)
    assert not (tmp_path / "result").exists()


def test_another_process_under_the_same_pid_is_not_ours(start: Start):
    held = start("exec sleep 60")
    former = dataclasses.replace(held.id, started=held.id.started - 1)
    assert not is_alive(former)
    stop_all([former], patience_s=0)
    assert is_alive(held.id)


def test_a_process_of_another_boot_is_not_ours(start: Start):
    held = start("exec sleep 60")
    assert not is_alive(dataclasses.replace(held.id, boot="another"))


def test_a_process_that_ended_has_no_identity():
    process = subprocess.Popen(["true"])
    wait_for(lambda: identify(process.pid) is None)  # it is a zombie until the next line
    process.wait()


def test_a_process_that_ignores_sigterm_is_killed(start: Start, tmp_path: Path):
    held = start("trap '' TERM; touch trapped; while :; do sleep 1; done")
    held.release()
    wait_for((tmp_path / "trapped").exists)
    stop_all([held.id], patience_s=0.1)
    assert not is_alive(held.id)


def test_stopping_what_ended_long_ago_does_nothing():
    stop_all([ProcessId(pid=2**22 + 1, started=1, boot="another")], patience_s=0)

"""An `up` that does not come to its end, however it ends, leaves nothing behind."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.integration.harness.api import eventually
from tests.integration.harness.control_plane import VCJOB, run_cluster_command

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.components import CONTROL_PLANE
from vcjob.cluster.processes import is_alive
from vcjob.cluster.progress import Progress
from vcjob.cluster.record import Record, read_record


@pytest.mark.parametrize(
    ("how", "after"),
    [
        pytest.param(signal.SIGKILL, "etcd", id="killed with the first component"),
        pytest.param(signal.SIGKILL, "kube-scheduler", id="killed with the last component"),
        pytest.param(signal.SIGTERM, "kube-apiserver", id="terminated on the way"),
        pytest.param(signal.SIGINT, "kube-apiserver", id="interrupted on the way"),
    ],
)
async def test_nothing_is_left_of_an_up_that_was(how: signal.Signals, after: str, tmp_path: Path):
    record = await interrupt_up(how, after=after, home=tmp_path)
    await eventually(lambda: not list(tmp_path.iterdir()), what="the removal of the folder")
    assert not any(is_alive(component.process) for component in record.components)


async def test_an_interrupted_up_says_so_and_the_next_one_works(tmp_path: Path):
    await interrupt_up(signal.SIGINT, after="kube-apiserver", home=tmp_path)
    done = run_cluster_command("up", "--name", "cut", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run_cluster_command("down", "--name", "cut", home=tmp_path).returncode == 0


def test_a_component_that_ends_is_named_with_its_log_and_the_rest_goes(tmp_path: Path):
    assets = tmp_path / "assets"
    assets.mkdir()
    for name, path in find_binaries(CONTROL_PLANE, say=Progress()).items():
        (assets / name).symlink_to(path)
    (assets / "kube-scheduler").unlink()
    (assets / "kube-scheduler").write_text("#!/bin/sh\necho the scheduler is out of order\nexit 3\n")
    (assets / "kube-scheduler").chmod(0o755)
    home = tmp_path / "home"

    done = run_cluster_command("up", "--name", "broken", home=home, env={"KUBEBUILDER_ASSETS": str(assets)})
    assert done.returncode == 1
    log = home / "broken.failed" / "kube-scheduler.log"
    assert f"kube-scheduler ended; the end of {log}:\n  | the scheduler is out of order" in done.stderr
    assert log.read_text() == "the scheduler is out of order\n"
    assert [path.name for path in home.iterdir()] == ["broken.failed"]

    done = run_cluster_command("down", "--name", "broken", home=home)
    assert done.returncode == 0
    assert list(home.iterdir()) == []


def test_when_no_way_leads_to_the_binaries_each_way_is_named_with_its_reason(tmp_path: Path):
    nowhere = "http://127.0.0.1:1"
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to(str(shutil.which("sh")))
    env = {
        "KUBEBUILDER_ASSETS": str(tmp_path / "no-assets"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": str(programs),  # no go
        "https_proxy": nowhere,
        "PIP_INDEX_URL": nowhere,
        "PIP_CONFIG_FILE": os.devnull,
    }
    done = run_cluster_command("up", home=tmp_path / "home", env=env)
    assert done.returncode == 1
    assert "no way led to etcd, kube-apiserver, kube-controller-manager, kube-scheduler" in done.stderr
    for way in ("KUBEBUILDER_ASSETS=", "the cache", "download", "PyPI", "go build"):
        assert f"\n  - {way}" in done.stderr
    assert "Traceback" not in done.stderr


async def interrupt_up(how: signal.Signals, *, after: str, home: Path) -> Record:
    """Start `up`, send it a signal as soon as a component was started, and return its record of that moment."""
    process = await asyncio.create_subprocess_exec(
        *VCJOB,
        "up",
        "--name=cut",
        env={**os.environ, "VCJOB_CLUSTER_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    def started() -> Record | None:
        record = read_record(home / "cut" / "cluster.json")
        return record if record and any(c.name == after for c in record.components) else None

    try:
        record = await eventually(started, timeout_s=90, every_s=0.005)
        process.send_signal(how)
    except BaseException:
        process.kill()
        run_cluster_command("down", "--name", "cut", home=home)
        raise
    out, err = await process.communicate()
    assert b"is up" not in out
    if how is signal.SIGINT:
        assert (process.returncode, err) == (130, b"interrupted; what this command had started is gone\n")
    return record

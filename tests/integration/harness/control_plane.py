"""A cluster of the tests' own, started and ended as a user would, with the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vcjob.cluster.audit import AuditLog
from vcjob.cluster.guardian import Guardian, Undo
from vcjob.cluster.record import read_record

VCJOB: Final = (str(Path(sys.executable).with_name("vcjob")), "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """A running cluster."""

    name: str
    home: Path  # VCJOB_CLUSTER_HOME

    @property
    def folder(self) -> Path:
        return self.home / self.name

    @property
    def admin_kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        return self.folder / "operator.kubeconfig"

    @property
    def audit(self) -> AuditLog:
        return AuditLog(self.folder / "logs" / "audit.log")


def run_cluster_command(
    *arguments: str, home: Path, env: Mapping[str, str] | None = None, timeout_s: float = 3600.0
) -> "subprocess.CompletedProcess[str]":
    """Run `vcjob cluster …` and return how it went. The first run ever may build the binaries."""
    return subprocess.run(
        [*VCJOB, *arguments],
        env={**os.environ, "VCJOB_CLUSTER_HOME": str(home), **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@contextmanager
def running_cluster(name: str, *, home: Path, flags: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """Bring a cluster up for the time of the block; it goes even when the test run is killed."""
    done = run_cluster_command("up", "--name", name, *flags, home=home)
    assert done.returncode == 0, done.stderr
    plane = ControlPlane(name=name, home=home)
    record = read_record(plane.folder / "cluster.json")
    assert record is not None
    guardian = Guardian()
    guardian.remember(Undo(path=str(plane.folder)))
    for component in record.components:
        guardian.remember(Undo(process=component.process))
    try:
        yield plane
    finally:
        # After a failure too: a test may have had components started anew, of which the guardian does not know.
        done = run_cluster_command("down", "--name", name, home=home)
        guardian.clean_up()
    assert done.returncode == 0, done.stderr

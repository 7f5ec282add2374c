"""Values for the tests of the cluster room, valid as they are."""

from dataclasses import replace
from pathlib import Path

from vcjob.cluster.components import Layout, Ports
from vcjob.cluster.paths import ClusterPaths
from vcjob.cluster.pki import CertificateFiles
from vcjob.cluster.processes import ProcessId
from vcjob.cluster.record import Phase, Record, RunningComponent
from vcjob.cluster.versions import TOOLS

__all__ = ("layout", "paths", "record", "running")

PORTS = Ports(apiserver=20001, controller_manager=20002, scheduler=20003)


def paths(home: Path = Path("/home")) -> ClusterPaths:
    return ClusterPaths(name="c", folder=home / "c", lock=home / "c.lock", failed_logs=home / "c.failed")


def layout(**changes: object) -> Layout:
    binaries = {tool.name: Path("/bin") / tool.name for tool in TOOLS}
    files = CertificateFiles(folder=paths().pki)
    return replace(Layout(paths=paths(), files=files, ports=PORTS, binaries=binaries, audit=False), **changes)


def running(name: str, *, pid: int = 7) -> RunningComponent:
    process = ProcessId(pid=pid, started=1, boot="b")
    return RunningComponent(name=name, process=process, command=("/bin/" + name,), log=f"/logs/{name}.log")


def record(*names: str) -> Record:
    return Record(
        name="c",
        phase=Phase.UP,
        kubernetes="v1",
        ports=PORTS,
        audit=False,
        components=tuple(running(name) for name in names),
    )

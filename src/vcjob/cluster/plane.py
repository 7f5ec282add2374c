"""The life of a cluster: `up`, `down` and `status`.

`up` is level-triggered: it makes what is not there and starts what does not run; on a healthy cluster it starts
nothing.
Whatever one `up` started is undone when that `up` does not come to its end (see `guardian`).
"""

import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vcjob.cluster.bringup import Bringup, PortTaken
from vcjob.cluster.errors import ClusterError, ComponentFailed, NoSuchCluster
from vcjob.cluster.guardian import Guardian, Undo
from vcjob.cluster.lock import locked
from vcjob.cluster.manifests import Crds
from vcjob.cluster.paths import ClusterPaths, cluster_names, cluster_paths
from vcjob.cluster.processes import is_alive, stop_all
from vcjob.cluster.progress import Progress
from vcjob.cluster.record import Phase, Record, RunningComponent, read_record
from vcjob.cluster.versions import ETCD, KUBE_APISERVER

__all__ = ("ComponentStatus", "Status", "UpRequest", "UpResult", "down", "require", "status", "up")

_LOCK_WAIT_S: Final = 120.0
_PORT_TRIES: Final = 3
_STOP_PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    """What the user asked `up` for."""

    name: str
    nodes: int | None = None  # fake ones; None: as many as there are, at first none
    crds: Crds = Crds.INSTALL
    audit: bool = False
    controllers: bool = True  # False: etcd and an API server only
    apiserver_flags: Mapping[str, str] = field(default_factory=dict)  # beside, or in the place of, the usual ones


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """What `up` found and did."""

    paths: ClusterPaths
    record: Record
    started: tuple[str, ...]  # names of the components that this `up` started; empty: it ran already
    seconds: float  # from the moment that the binaries were there
    notes: tuple[str, ...] = ()  # what was asked for and could not be given


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStatus:
    """One component, as the kernel and its record have it."""

    component: RunningComponent
    alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One cluster, now."""

    paths: ClusterPaths
    record: Record
    components: tuple[ComponentStatus, ...]

    @property
    def healthy(self) -> bool:
        return self.record.phase is Phase.UP and all(c.alive for c in self.components)


def up(request: UpRequest, *, say: Progress) -> UpResult:
    """Bring the cluster up, wait until it can be used, and say what was done; raises ClusterError."""
    paths = cluster_paths(request.name)
    with _cluster_lock(paths, say=say) as lock:
        record = read_record(paths.record)
        if record is None or record.phase is Phase.STARTING:
            _remove_remains(paths, record=record)
            return _up_anew(request, paths=paths, lock=lock, say=say)
        return _up_again(request, paths=paths, record=record, lock=lock, say=say)


def down(name: str, *, say: Progress) -> bool:
    """End the cluster's processes, remove its folder, and say whether there was anything; raises ClusterError."""
    paths = cluster_paths(name)
    if not paths.lock.exists() and not paths.folder.exists() and not paths.failed_logs.exists():
        return False
    with _cluster_lock(paths, say=say):
        record = read_record(paths.record)
        there = paths.folder.exists()
        _remove_remains(paths, record=record)
        shutil.rmtree(paths.failed_logs, ignore_errors=True)
        paths.lock.unlink(missing_ok=True)
        return there


def status(name: str) -> Status:
    """Return how the cluster is; raises NoSuchCluster."""
    paths = cluster_paths(name)
    record = read_record(paths.record)
    if record is None:
        raise NoSuchCluster(name, others=cluster_names())
    components = tuple(ComponentStatus(component=c, alive=is_alive(c.process)) for c in record.components)
    return Status(paths=paths, record=record, components=components)


def require(name: str) -> ClusterPaths:
    """Return the paths of a cluster that is up; raises NoSuchCluster, or ClusterError when it is not well."""
    found = status(name)
    if dead := [c.component.name for c in found.components if not c.alive]:
        raise ClusterError(
            f"cluster {name!r} is not well: {', '.join(dead)} ended; see `vcjob cluster status --name {name}`, "
            f"start it again with `vcjob cluster up --name {name}`"
        )
    return found.paths


def _up_anew(request: UpRequest, *, paths: ClusterPaths, lock: int, say: Progress) -> UpResult:
    for attempt in range(1, _PORT_TRIES + 1):
        try:
            return _up_once(request, paths=paths, lock=lock, say=say)
        except PortTaken as error:
            if attempt == _PORT_TRIES:
                raise error.failure from error
            say("another program took a port in the meantime; trying others")
    raise AssertionError("unreachable")


def _up_once(request: UpRequest, *, paths: ClusterPaths, lock: int, say: Progress) -> UpResult:
    bringup = Bringup.prepare(
        paths,
        nodes=request.nodes or 0,
        audit=request.audit,
        controllers=request.controllers,
        apiserver_flags=request.apiserver_flags,
        say=say,
    )
    began = time.monotonic()
    guardian = Guardian(keep_open=(lock,))
    try:
        guardian.remember(Undo(path=str(paths.folder)))
        guardian.remember(Undo(path=str(paths.lock)))
        bringup.lay_out()
        bringup.start_all(guardian=guardian)
        bringup.furnish(crds=request.crds)
        bringup.finish(guardian=guardian)
    except ComponentFailed as failure:
        kept = _keep_logs(paths)
        guardian.clean_up()
        raise failure.with_log_at(kept / failure.log.name) from None
    except BaseException:  # an interruption, too, must leave nothing behind
        guardian.clean_up()
        raise
    guardian.dismiss()
    shutil.rmtree(paths.failed_logs, ignore_errors=True)
    return UpResult(
        paths=paths,
        record=bringup.record,
        started=tuple(c.name for c in bringup.record.components),
        seconds=time.monotonic() - began,
    )


def _up_again(request: UpRequest, *, paths: ClusterPaths, record: Record, lock: int, say: Progress) -> UpResult:
    notes = []
    if request.audit and not record.audit:
        notes.append("an audit log can only be asked for when a cluster is new; run `down` first")
    if record.controllers and not request.controllers:
        notes.append("whether controllers belong to a cluster is chosen when it is new; run `down` first")
    if request.apiserver_flags:
        notes.append("flags of the API server are for new clusters only; run `down` first")
    nodes = record.nodes if request.nodes is None else request.nodes
    began = time.monotonic()
    bringup = Bringup.resume(paths, record=record, nodes=nodes, say=say)
    guardian = Guardian(keep_open=(lock,))
    try:
        bringup.restart(guardian=guardian)
        bringup.scale(guardian=guardian)
        bringup.furnish(crds=request.crds)
        bringup.finish(guardian=guardian)
    except BaseException:
        guardian.clean_up()
        raise
    guardian.dismiss()
    return UpResult(
        paths=paths,
        record=bringup.record,
        started=tuple(c.name for c in bringup.record.components if c not in record.components),
        seconds=time.monotonic() - began,
        notes=tuple(notes),
    )


def _remove_remains(paths: ClusterPaths, *, record: Record | None) -> None:
    """End the processes of the record, clients before servers, and remove the folder."""
    components = record.components if record else ()
    servers = (
        KUBE_APISERVER.name,
        ETCD.name,
    )  # etcd last: without its storage, the API server cannot stop in order
    stop_all([c.process for c in components if c.name not in servers], patience_s=_STOP_PATIENCE_S)
    for server in servers:
        stop_all([c.process for c in components if c.name == server], patience_s=_STOP_PATIENCE_S)
    if paths.folder.exists():
        shutil.rmtree(paths.folder)


def _keep_logs(paths: ClusterPaths) -> Path:
    """Move the logs out of the folder that is about to be removed, and say where to."""
    shutil.rmtree(paths.failed_logs, ignore_errors=True)
    paths.logs.rename(paths.failed_logs)
    return paths.failed_logs


def _cluster_lock(paths: ClusterPaths, *, say: Progress) -> AbstractContextManager[int]:
    return locked(paths.lock, what=f"cluster {paths.name!r}", wait_s=_LOCK_WAIT_S, say=say)

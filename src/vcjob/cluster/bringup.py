"""The steps of one `up`: lay out the folder, start the components, furnish the API, in this order.

Every process is written into the record and told to the guardian before it does anything. A step waits for what it
needs, and gives up as soon as a component that this `up` started has ended. One that ran before is started again first,
whenever it ends: a client may outlive its server's end, and end only when the server is back.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import yaml

from vcjob.cluster.api import ApiServer, Refusal, wait_until
from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.components import (
    AUDIT_POLICY,
    AUDIT_POLICY_FILE,
    CONTROL_PLANE,
    SCHEDULER_CONFIG_FILE,
    STAGES_FILE,
    Layout,
    component,
    scheduler_config,
)
from vcjob.cluster.errors import ComponentFailed
from vcjob.cluster.fakes import NODE_LABEL, scale_fake_nodes, stages
from vcjob.cluster.guardian import Guardian, Undo
from vcjob.cluster.kubeconfig import Endpoint, write_certificate_kubeconfig, write_token_kubeconfig
from vcjob.cluster.manifests import (
    OPERATOR_NAMESPACE,
    OPERATOR_USER,
    Crds,
    apply_project_manifests,
    request_operator_token,
)
from vcjob.cluster.paths import ClusterPaths
from vcjob.cluster.pki import ADMIN, USERS, CertificateFiles, write_pki
from vcjob.cluster.ports import choose_ports
from vcjob.cluster.processes import is_alive, start_held
from vcjob.cluster.progress import Progress
from vcjob.cluster.record import Phase, Record, RunningComponent, write_record
from vcjob.cluster.versions import (
    ETCD,
    KUBE_APISERVER,
    KUBE_CONTROLLER_MANAGER,
    KUBE_SCHEDULER,
    KUBERNETES_VERSION,
    KWOK,
    Tool,
)

__all__ = ("Bringup", "PortTaken")

# What a slow, busy machine may need; a component that ends is noticed at once.
_READY_TIMEOUT_S: Final = 120.0
# How long after its server is back a client may still end of having lost it.
_SETTLE_S: Final = 5.0
_SERVERS: Final[AbstractSet[str]] = {ETCD.name, KUBE_APISERVER.name}
_LAST_LINES: Final = 15
_PORT_TAKEN: Final = "address already in use"


class PortTaken(Exception):
    """A component found its port taken; `failure` is the error to show when other ports do not help either."""

    def __init__(self, failure: ComponentFailed) -> None:
        self.failure = failure
        super().__init__(str(failure))


class Bringup:
    """One `up` on its way; `record` is what stands on the disk."""

    def __init__(
        self,
        paths: ClusterPaths,
        *,
        record: Record,
        nodes: int,
        binaries: Mapping[str, Path],
        say: Progress,
        apiserver_flags: Mapping[str, str] | None = None,
    ) -> None:
        self.record = record
        self._paths = paths
        self._nodes = nodes
        self._say = say
        self._former = {c.name for c in record.components}  # run, or have ended, since before this `up`
        self._lost_server = False
        self._layout = Layout(
            paths=paths,
            files=CertificateFiles(folder=paths.pki),
            ports=record.ports,
            binaries=binaries,
            audit=record.audit,
            apiserver_flags=apiserver_flags or {},
        )

    @classmethod
    def prepare(
        cls,
        paths: ClusterPaths,
        *,
        nodes: int,
        audit: bool,
        controllers: bool,
        apiserver_flags: Mapping[str, str],
        say: Progress,
    ) -> "Bringup":
        """Find the binaries of a new cluster and choose its ports; raises ClusterError. Nothing is written."""
        binaries = find_binaries((*CONTROL_PLANE, KWOK) if nodes else CONTROL_PLANE, say=say)
        record = Record(
            name=paths.name,
            phase=Phase.STARTING,
            kubernetes=KUBERNETES_VERSION,
            ports=choose_ports(),
            audit=audit,
            controllers=controllers,
        )
        if not controllers:  # nobody makes the default ServiceAccount without which no Pod would be admitted
            apiserver_flags = {"disable-admission-plugins": "ServiceAccount", **apiserver_flags}
        return cls(paths, record=record, nodes=nodes, binaries=binaries, say=say, apiserver_flags=apiserver_flags)

    @classmethod
    def resume(cls, paths: ClusterPaths, *, record: Record, nodes: int, say: Progress) -> "Bringup":
        """Return the steps for a cluster that was up; raises ClusterError."""
        has_fakes = any(c.name == KWOK.name for c in record.components)
        binaries = find_binaries((KWOK,), say=say) if nodes and not has_fakes else {}
        return cls(paths, record=record, nodes=nodes, binaries=binaries, say=say)

    def lay_out(self) -> None:
        """Make the folder, and in it every file that a component reads."""
        paths = self._paths
        paths.folder.mkdir(mode=0o700, parents=True)
        paths.logs.mkdir()
        files = write_pki(paths.pki)
        endpoint = self._endpoint()
        for user in USERS:
            write_certificate_kubeconfig(paths.kubeconfig(user.key), endpoint=endpoint, user=user, files=files)
        (paths.folder / AUDIT_POLICY_FILE).write_text(json.dumps(AUDIT_POLICY))
        (paths.folder / SCHEDULER_CONFIG_FILE).write_text(yaml.safe_dump(scheduler_config(paths)))
        (paths.folder / STAGES_FILE).write_text(stages())
        write_record(paths.record, record=self.record)

    def start_all(self, *, guardian: Guardian) -> None:
        """Start every component of a new cluster."""
        for tool in (ETCD, KUBE_APISERVER):
            self._start(tool, guardian=guardian)
        self._await_apiserver(guardian=guardian)
        for tool in (KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER) if self.record.controllers else ():
            self._start(tool, guardian=guardian)
        self.scale(guardian=guardian)

    def restart(self, *, guardian: Guardian) -> None:
        """Start again, on the data that is there, the components that have ended; the others are left as they are."""
        # In two rounds: a client that finds no API server in its first seconds ends.
        self._start_former(_SERVERS, guardian=guardian)
        self._await_apiserver(guardian=guardian)
        self._start_former(self._former - _SERVERS, guardian=guardian)

    def scale(self, *, guardian: Guardian) -> None:
        """Bring the number of fake nodes to what was asked for."""
        if not self._nodes and not self.record.nodes:
            return
        if all(c.name != KWOK.name for c in self.record.components):
            self._start(KWOK, guardian=guardian)
        api = self._api
        scale_fake_nodes(api, count=self._nodes)
        self._wait(
            lambda: _ready_nodes(api) == self._nodes,
            component_name=KWOK.name,
            problem="did not make the fake nodes Ready",
            guardian=guardian,
        )
        self.record = replace(self.record, nodes=self._nodes)
        write_record(self._paths.record, record=self.record)

    def furnish(self, *, crds: Crds) -> None:
        """Apply what the project brings, and write the operator's kubeconfig."""
        api = self._api
        apply_project_manifests(api, crds=crds)
        write_token_kubeconfig(
            self._paths.operator_kubeconfig,
            endpoint=self._endpoint(),
            user=OPERATOR_USER,
            token=request_operator_token(api),
            namespace=OPERATOR_NAMESPACE,
        )

    def finish(self, *, guardian: Guardian) -> None:
        """Wait until Pods can be made and scheduled, and write down that the cluster is up."""
        self._await_all(guardian=guardian)
        settled = not self._lost_server
        while not settled:
            settled = self._stays_up(guardian=guardian)
        self.record = replace(self.record, phase=Phase.UP)
        write_record(self._paths.record, record=self.record)

    def _await_all(self, *, guardian: Guardian) -> None:
        """Wait until every component runs and says that it is well."""
        self._tend(guardian)
        self._await_apiserver(guardian=guardian)
        if self.record.controllers:
            self._await_controllers(guardian=guardian)

    def _stays_up(self, *, guardian: Guardian) -> bool:
        """Watch for a while, and say whether nothing has ended; what has runs again."""
        before = self.record
        end = time.monotonic() + _SETTLE_S
        wait_until(lambda: time.monotonic() > end, timeout_s=math.inf, meanwhile=partial(self._tend, guardian))
        self._await_all(guardian=guardian)
        return self.record is before

    def _await_controllers(self, *, guardian: Guardian) -> None:
        api = self._api
        # Without its namespace's default ServiceAccount, no Pod is admitted; the controller manager makes it.
        for namespace in ("default", OPERATOR_NAMESPACE):
            self._wait(
                partial(_has_default_account, api, namespace=namespace),
                component_name=KUBE_CONTROLLER_MANAGER.name,
                problem=f"made no default ServiceAccount in {namespace}",
                guardian=guardian,
            )
        ports = self.record.ports
        for tool, port, path in (
            (KUBE_CONTROLLER_MANAGER, ports.controller_manager, "/healthz"),
            (KUBE_SCHEDULER, ports.scheduler, "/readyz"),
        ):
            asked = ApiServer(f"https://127.0.0.1:{port}", files=self._layout.files, user=ADMIN)
            self._wait(
                partial(asked.says_ok, path),
                component_name=tool.name,
                problem="did not become ready",
                guardian=guardian,
            )
            asked.close()

    def _start(self, tool: Tool, *, guardian: Guardian) -> None:
        wanted = component(tool, layout=self._layout)
        self._run(wanted.name, command=wanted.command, log=wanted.log, guardian=guardian)

    def _run(self, name: str, *, command: tuple[str, ...], log: Path, guardian: Guardian) -> None:
        folder = self._paths.folder
        # Its own HOME: no file of the user's configures a component. No proxy: everything is on loopback.
        env = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        held = start_held(command, folder=folder, log=log, env=env)
        guardian.remember(Undo(process=held.id))
        running = RunningComponent(name=name, process=held.id, command=command, log=str(log))
        self.record = self.record.with_component(running)
        write_record(self._paths.record, record=self.record)
        self._former.discard(name)
        held.release()

    def _await_apiserver(self, *, guardian: Guardian) -> None:
        api = self._api

        def tend_servers() -> None:
            self._start_former(_SERVERS, guardian=guardian)
            self._raise_for_the_dead()

        if not wait_until(lambda: api.says_ok("/readyz"), timeout_s=_READY_TIMEOUT_S, meanwhile=tend_servers):
            raise self._late(KUBE_APISERVER.name, problem="did not become ready")

    def _wait(self, check: Callable[[], bool], *, component_name: str, problem: str, guardian: Guardian) -> None:
        if not wait_until(check, timeout_s=_READY_TIMEOUT_S, meanwhile=partial(self._tend, guardian)):
            raise self._late(component_name, problem=problem)

    def _tend(self, guardian: Guardian) -> None:
        """Start again what has ended and was not started by this `up`; raise when something that was has ended."""
        if any(former.name in self._former for former in self._ended()):
            self.restart(guardian=guardian)
        self._raise_for_the_dead()

    def _start_former(self, names: AbstractSet[str], *, guardian: Guardian) -> None:
        for former in self._ended():
            if former.name in names & self._former:
                self._say(f"{former.name} had ended; starting it again")
                self._lost_server |= former.name in _SERVERS
                self._run(former.name, command=former.command, log=Path(former.log), guardian=guardian)

    def _ended(self) -> list[RunningComponent]:
        return [running for running in self.record.components if not is_alive(running.process)]

    def _raise_for_the_dead(self) -> None:
        for running in self._ended():
            if running.name not in self._former:
                failure = self._failure(running.name, problem="ended")
                if any(_PORT_TAKEN in line for line in failure.last_lines):
                    raise PortTaken(failure)
                raise failure

    def _late(self, name: str, *, problem: str) -> ComponentFailed:
        return self._failure(name, problem=f"{problem} within {_READY_TIMEOUT_S:.0f} s")

    def _failure(self, name: str, *, problem: str) -> ComponentFailed:
        log = next(Path(c.log) for c in self.record.components if c.name == name)
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
        return ComponentFailed(name, problem, log=log, last_lines=tuple(lines))

    @cached_property
    def _api(self) -> ApiServer:
        return ApiServer(self.record.url, files=self._layout.files, user=ADMIN)

    def _endpoint(self) -> Endpoint:
        return Endpoint(cluster=self._paths.name, url=self.record.url, ca=self._layout.files.ca)


def _has_default_account(api: ApiServer, *, namespace: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    return bool(api.call("GET", path, accept={Refusal.MISSING})["kind"] == "ServiceAccount")


def _ready_nodes(api: ApiServer) -> int:
    nodes = api.call("GET", f"/api/v1/nodes?labelSelector={NODE_LABEL}")["items"]
    return sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions") or ())
        for node in nodes
    )

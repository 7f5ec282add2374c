"""The programs of a control plane: their order, their arguments, and where each one says that it is well.

Pure: a layout in, command lines out. The order of `components` is the order of starting; stopping goes backwards.
Everything listens on loopback; etcd listens on a Unix socket in the cluster's folder, which only its owner may enter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vcjob.cluster.paths import ClusterPaths
from vcjob.cluster.pki import CONTROLLER_MANAGER, FAKE_KUBELET, FRONT_PROXY, SCHEDULER, CertificateFiles
from vcjob.cluster.versions import ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, KWOK, Tool

__all__ = (
    "AUDIT_POLICY",
    "AUDIT_POLICY_FILE",
    "CONTROL_PLANE",
    "SCHEDULER_CONFIG_FILE",
    "STAGES_FILE",
    "Component",
    "Layout",
    "Ports",
    "component",
    "scheduler_config",
)

CONTROL_PLANE: Final = (ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER)

AUDIT_POLICY_FILE: Final = "audit-policy.yaml"
SCHEDULER_CONFIG_FILE: Final = "scheduler.yaml"
STAGES_FILE: Final = "stages.yaml"

# Who did what to which object, without bodies; once a request, when it is over (a watch: when it begins as well).
AUDIT_POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}

_SERVICE_RANGE: Final = "10.96.0.0/16"
_POD_RANGE: Final = "10.128.0.0/9"
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
# The wanted speed is the API server's, so its clients are not throttled on their own side.
_CLIENT_QPS: Final = 1000
_CLIENT_BURST: Final = 2000
# A host and a port is what etcd insists on; with the scheme unix they name a socket file in the working folder.
_ETCD_URL: Final = "unix://etcd:0"
_ETCD_PEER_URL: Final = "unix://etcd-peer:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The loopback ports of one cluster."""

    apiserver: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a command line depends on."""

    paths: ClusterPaths
    files: CertificateFiles
    ports: Ports
    binaries: Mapping[str, Path]
    audit: bool
    apiserver_flags: Mapping[str, str] = field(default_factory=dict)  # the user's own; they win


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One program, ready to be started in the cluster's folder."""

    name: str
    command: tuple[str, ...]
    log: Path


def component(tool: Tool, *, layout: Layout) -> Component:
    """Return the component that runs `tool` in this layout."""
    flags = _FLAGS[tool.name](layout)
    return Component(
        name=tool.name,
        command=(str(layout.binaries[tool.name]), *(f"--{flag}={value}" for flag, value in flags.items())),
        log=layout.paths.logs / f"{tool.name}.log",
    )


def scheduler_config(paths: ClusterPaths) -> dict[str, Any]:
    """Return the scheduler's configuration file; its flags for these are deprecated."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(paths.kubeconfig(SCHEDULER.key)),
            "qps": _CLIENT_QPS,
            "burst": _CLIENT_BURST,
        },
    }


def _etcd(layout: Layout) -> dict[str, str]:
    return {
        "name": "vcjob",
        "data-dir": str(layout.paths.folder / "etcd"),
        "listen-client-urls": _ETCD_URL,
        "advertise-client-urls": _ETCD_URL,
        "listen-peer-urls": _ETCD_PEER_URL,
        "initial-advertise-peer-urls": _ETCD_PEER_URL,
        "initial-cluster": f"vcjob={_ETCD_PEER_URL}",
        "unsafe-no-fsync": "true",  # the data is for trying and testing; a power cut may cost it
        "quota-backend-bytes": str(8 * 1024**3),
        "log-level": "warn",
    }


def _apiserver(layout: Layout) -> dict[str, str]:
    files = layout.files
    flags = {
        "etcd-servers": _ETCD_URL,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",  # an Endpoints object must not hold a loopback address
        "secure-port": str(layout.ports.apiserver),
        "tls-cert-file": str(files.serving),
        "tls-private-key-file": str(files.serving_key),
        "client-ca-file": str(files.ca),
        "requestheader-client-ca-file": str(files.front_proxy_ca),
        "requestheader-allowed-names": FRONT_PROXY.name,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": str(files.client(FRONT_PROXY)),
        "proxy-client-key-file": str(files.client_key(FRONT_PROXY)),
        "service-account-issuer": _ISSUER,
        "service-account-key-file": str(files.service_account_public_key),
        "service-account-signing-key-file": str(files.service_account_key),
        "service-cluster-ip-range": _SERVICE_RANGE,
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "max-requests-inflight": "2000",
        "max-mutating-requests-inflight": "1000",
    }
    if layout.audit:
        flags |= {
            "audit-policy-file": str(layout.paths.folder / AUDIT_POLICY_FILE),
            "audit-log-path": str(layout.paths.audit_log),
            "audit-log-maxsize": "0",  # no rotation: a count over the log must see all of it
        }
    return {**flags, **layout.apiserver_flags}


def _controller_manager(layout: Layout) -> dict[str, str]:
    files = layout.files
    kubeconfig = str(layout.paths.kubeconfig(CONTROLLER_MANAGER.key))
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "leader-elect": "false",
        "use-service-account-credentials": "true",  # each controller under its own name and rights
        "service-account-private-key-file": str(files.service_account_key),
        "root-ca-file": str(files.ca),
        "cluster-signing-cert-file": str(files.ca),
        "cluster-signing-key-file": str(files.ca_key),
        "service-cluster-ip-range": _SERVICE_RANGE,
        "bind-address": "127.0.0.1",
        "secure-port": str(layout.ports.controller_manager),
        "tls-cert-file": str(files.serving),
        "tls-private-key-file": str(files.serving_key),
        "kube-api-qps": str(_CLIENT_QPS),
        "kube-api-burst": str(_CLIENT_BURST),
    }


def _scheduler(layout: Layout) -> dict[str, str]:
    files = layout.files
    kubeconfig = str(layout.paths.kubeconfig(SCHEDULER.key))
    return {
        "config": str(layout.paths.folder / SCHEDULER_CONFIG_FILE),
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": str(layout.ports.scheduler),
        "tls-cert-file": str(files.serving),
        "tls-private-key-file": str(files.serving_key),
    }


def _kwok(layout: Layout) -> dict[str, str]:
    return {
        "kubeconfig": str(layout.paths.kubeconfig(FAKE_KUBELET.key)),
        "config": str(layout.paths.folder / STAGES_FILE),
        "manage-all-nodes": "true",
        "cidr": _POD_RANGE,
        "node-ip": "127.0.0.1",
        "node-lease-duration-seconds": "40",
        "v": "WARN",  # at INFO it writes a line for each change of each Pod
    }


_FLAGS: Final = {
    ETCD.name: _etcd,
    KUBE_APISERVER.name: _apiserver,
    KUBE_CONTROLLER_MANAGER.name: _controller_manager,
    KUBE_SCHEDULER.name: _scheduler,
    KWOK.name: _kwok,
}

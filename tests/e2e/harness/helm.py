"""helm and the operator's own Pods."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e.harness.kubectl import Answer, Kubectl, wait_for

__all__ = ("CHART", "NAMESPACE", "RELEASE", "Release")

CHART: Final = Path(__file__).parents[3] / "deploy/helm/vcjob"
RELEASE: Final = "vcjob"
NAMESPACE: Final = "vcjob-system"
LEASE: Final = "vcjob-controller-manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The installed chart."""

    kubectl: Kubectl  # in the namespace of the release

    def helm(self, *arguments: str) -> str:
        """Run a command that must succeed; return what it printed."""
        answer = self.attempt(*arguments)
        assert answer.code == 0, f"helm {' '.join(arguments)} failed: {answer.err}{answer.out}"
        return answer.out

    def attempt(self, *arguments: str) -> Answer:
        """Run a command, whatever comes of it."""
        run = subprocess.run(
            ("helm", *arguments, "--namespace", NAMESPACE),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "KUBECONFIG": str(self.kubectl.kubeconfig)},
        )
        return Answer(code=run.returncode, out=run.stdout, err=run.stderr)

    def values(self) -> dict[str, Any]:
        """Return the values that were given."""
        values: dict[str, Any] = json.loads(self.helm("get", "values", RELEASE, "-o", "json")) or {}
        return values

    def upgrade(self, *arguments: str) -> str:
        """Install or upgrade with the values that the release has, and more; wait until it is ready."""
        known = self.attempt("status", RELEASE).code == 0
        reuse = ("--reuse-values",) if known else ()
        return self.helm("upgrade", "--install", RELEASE, str(CHART), *reuse, "--wait", "--timeout=3m", *arguments)

    def pods(self) -> dict[str, Any]:
        """Return the operator's Pods that are not going, by name."""
        pods = self.kubectl.list("pods", "-l", "app.kubernetes.io/component=operator")
        return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def leader(self) -> str:
        """Return the name of the Pod that holds the Lease."""

        def find() -> str:
            lease = self.kubectl.get("lease", LEASE) or {}
            holder = str(lease.get("spec", {}).get("holderIdentity") or "").split("_")[0]
            return holder if holder in self.pods() else ""

        return str(wait_for("a leader", find))

    def wait_until_ready(self) -> None:
        """Wait for every replica."""
        self.kubectl("rollout", "status", "deployment/vcjob-operator", "--timeout=120s")

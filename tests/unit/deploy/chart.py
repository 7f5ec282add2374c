"""The chart as helm renders it."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ("CHART", "ROOT", "VALUES", "Objects", "find_helm", "helm", "render")

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "deploy/helm/vcjob"
VALUES: Final = Path(__file__).parent / "values"
# A helm that was built by `go install` takes the cluster for v1.20 when it is not told.
KUBE_VERSION: Final = "1.36.3"


def find_helm() -> str:
    """Return the program: that of `make helm`, or the one on the path. A missing one is a failure, never a skip."""
    own = Path.home() / ".cache/vcjob/tools/helm"
    found = str(own) if own.exists() else shutil.which("helm")
    assert found, "helm is missing; run: make helm"
    return found


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm, whatever comes of it."""
    return subprocess.run((find_helm(), *arguments), capture_output=True, text=True, timeout=60, check=False)


class Objects:
    """Rendered objects, found by kind and name."""

    def __init__(self, text: str) -> None:
        self.all: list[Any] = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]

    def get(self, kind: str, name: str) -> Any:
        """Return the one object of this kind and name."""
        (found,) = [o for o in self.of(kind) if o["metadata"]["name"] == name]
        return found

    def of(self, kind: str) -> list[Any]:
        """Return all objects of a kind."""
        return [o for o in self.all if o["kind"] == kind]


@cache
def render(*arguments: str, values: str = "", namespace: str = "vcjob-system") -> Objects:
    """Return what `helm template` makes of a file in values/ and of more arguments."""
    files = ("-f", str(VALUES / f"{values}.yaml")) if values else ()
    flags = (f"--kube-version={KUBE_VERSION}", f"--namespace={namespace}")
    done = helm("template", "vcjob", str(CHART), *flags, *files, *arguments)
    assert done.returncode == 0, done.stderr
    return Objects(done.stdout)

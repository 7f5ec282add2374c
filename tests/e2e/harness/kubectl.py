"""kubectl, as a user would type it, and the waiting that a cluster of real containers asks for."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ("JOBS", "Answer", "Kubectl", "wait_for")

JOBS: Final = "jobs.batch.volcano.sh"
PATIENCE_S: Final = 120.0  # two shared cores start a Pod in seconds, and now and then in half a minute
_LOOK_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one command printed."""

    code: int
    out: str
    err: str


def wait_for(
    what: str, find: Callable[[], Any], *, patience_s: float = PATIENCE_S, tell: Callable[[], str] = str
) -> Any:
    """Return the first true answer of `find`; fail with `what` and with what `tell` says when it does not come."""
    end = time.monotonic() + patience_s
    while True:
        if found := find():
            return found
        assert time.monotonic() < end, f"waited {patience_s:.0f} s in vain: {what}\n{tell()}"
        time.sleep(_LOOK_AGAIN_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl with one kubeconfig and one namespace."""

    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed; return what it printed."""
        answer = self.attempt(*arguments, stdin=stdin)
        assert answer.code == 0, f"kubectl {' '.join(arguments)} failed: {answer.err}{answer.out}"
        return answer.out

    def attempt(self, *arguments: str, stdin: str = "") -> Answer:
        """Run a command, whatever comes of it."""
        run = subprocess.run(
            ("kubectl", f"--namespace={self.namespace}", *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
        )
        return Answer(code=run.returncode, out=run.stdout, err=run.stderr)

    def inside(self, namespace: str) -> "Kubectl":
        """Return the same in another namespace."""
        return Kubectl(kubeconfig=self.kubeconfig, namespace=namespace)

    def apply(self, *objects: Any) -> None:
        """Apply objects as a user would: server side, so that a wrong field is an error."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)

    def get(self, kind: str, name: str) -> Any:
        """Return an object; None when it is not there."""
        answer = self.attempt("get", kind, name, "-o", "json", "--ignore-not-found")
        assert answer.code == 0, answer.err
        return json.loads(answer.out) if answer.out.strip() else None

    def list(self, kind: str, *arguments: str) -> list[Any]:
        """Return the objects of a kind."""
        items: list[Any] = json.loads(self("get", kind, "-o", "json", *arguments))["items"]
        return items

    def pods(self, job: str) -> dict[str, Any]:
        """Return the Pods of a Job by name."""
        return {pod["metadata"]["name"]: pod for pod in self.list("pods", "-l", f"volcano.sh/job-name={job}")}

    def phase(self, job: str) -> str:
        """Return the phase of a Job; empty when it has none yet."""
        found = self.get(JOBS, job) or {}
        return str(found.get("status", {}).get("state", {}).get("phase", ""))

    def wait_for_phase(self, job: str, *phases: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait until a Job is in one of the phases; return it."""
        wait_for(
            f"{job} to be {' or '.join(phases)}",
            lambda: self.phase(job) in phases,
            patience_s=patience_s,
            tell=lambda: self.describe(job),
        )
        return self.get(JOBS, job)

    def wait_for_pods(self, job: str, phase: str, *, count: int, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until `count` Pods of a Job are in a phase and none is going; return them."""

        def find() -> dict[str, Any]:
            pods = {
                name: pod
                for name, pod in self.pods(job).items()
                if pod["status"]["phase"] == phase and "deletionTimestamp" not in pod["metadata"]
            }
            return pods if len(pods) == count else {}

        found: dict[str, Any] = wait_for(
            f"{count} Pods of {job} to be {phase}", find, patience_s=patience_s, tell=lambda: self.describe(job)
        )
        return found

    def execute(self, pod: str, command: str) -> str:
        """Return what a shell command prints in a Pod."""
        return self("exec", pod, "--", "sh", "-c", command)

    def events(self, job: str) -> str:
        """Return the Events of a Job, one `type reason message` a line."""
        events = self.list("events", f"--field-selector=involvedObject.kind=Job,involvedObject.name={job}")
        return "\n".join(f"{e['type']} {e['reason']} {e['message']}" for e in events)

    def describe(self, job: str) -> str:
        """Return what a person would look at when a Job does not do what it should."""
        status = json.dumps((self.get(JOBS, job) or {}).get("status"), indent=1)
        pods = self.attempt("get", "pods", "-o", "wide").out
        return f"status: {status}\n{pods}\n{self.events(job)}"

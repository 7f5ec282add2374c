#!/usr/bin/env python3
"""`make demo`: a user's Job from `kubectl apply` to its end, on a real API server, under the operator's own identity.

Starts a local control plane with fake nodes and the operator, applies a Job of examples/, waits until it runs, prints
what a person wants to see, deletes the Job, shows that nothing is left, and stops what it started. Any step that does
not come true ends it with exit code 1 and the reason.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VCJOB = Path(sys.executable).with_name("vcjob")
CLUSTER = f"demo-{os.getpid()}"  # one of its own, since it is taken down in the end with all that is in it
EXAMPLE = "examples/tensorflow-dist-mnist.yaml"
JOB = "tensorflow-dist-mnist"
OWNED = "pods,services,configmaps,networkpolicies,podgroups"
BOLD, PLAIN = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")


class Failure(Exception):
    """The demo cannot go on."""


def main() -> int:
    began = time.monotonic()
    operator: subprocess.Popen[bytes] | None = None
    try:
        say("A control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and three fake nodes")
        run([VCJOB, "cluster", "up", "--name", CLUSTER, "--nodes", "3"])
        say("The operator, as a process of its own, with no more rights than deploy/rbac gives it")
        operator = start_operator()
        say(f"kubectl apply -f {EXAMPLE}")
        kubectl("apply", "-f", str(ROOT / EXAMPLE))
        wait_until("the Job runs", lambda: read("vcjob", JOB)["status"]["state"]["phase"] == "Running")
        wait_until("status counts 3 running Pods", lambda: read("vcjob", JOB)["status"].get("running") == 3)
        show(JOB)
        say(f"kubectl delete vcjob {JOB}")
        kubectl("delete", "vcjob", JOB)
        wait_until("everything of the Job is gone", lambda: not leftovers(JOB))
        print("nothing of it is left: no Pod, Service, ConfigMap, NetworkPolicy or PodGroup")
        print(f"\n{BOLD}It works.{PLAIN} {time.monotonic() - began:.0f} s in all.")
        print("Try it yourself:  .venv/bin/vcjob cluster up --nodes 3   and then   .venv/bin/vcjob operator --help")
        return 0
    except Failure as failure:
        print(f"\nthe demo failed: {failure}", file=sys.stderr)
        return 1
    finally:
        if operator is not None:
            stop(operator)
        subprocess.run([VCJOB, "cluster", "down", "--name", CLUSTER], check=False, stdout=subprocess.DEVNULL)


def say(text: str) -> None:
    print(f"\n{BOLD}== {text}{PLAIN}", flush=True)


def run(command: list[Any]) -> None:
    if subprocess.run([str(word) for word in command], check=False).returncode:
        raise Failure(f"{' '.join(Path(str(word)).name for word in command)} failed, see above")


def kubectl(*arguments: str) -> None:
    run([VCJOB, "cluster", "kubectl", "--name", CLUSTER, *arguments])


def kubectl_json(*arguments: str) -> Any:
    command = [VCJOB, "cluster", "kubectl", "--name", CLUSTER, *arguments, "-o", "json"]
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True)
    if done.returncode:
        raise Failure(done.stderr.decode().strip())
    return json.loads(done.stdout)


def read(kind: str, name: str) -> Any:
    return {"status": {"state": {"phase": ""}}} | kubectl_json("get", kind, name)


def leftovers(job: str) -> list[str]:
    items = kubectl_json("get", OWNED)["items"]
    owners = {(i["kind"], i["metadata"]["name"]): i["metadata"].get("ownerReferences", []) for i in items}
    return [f"{kind} {name}" for (kind, name), refs in owners.items() if any(r["name"] == job for r in refs)]


def start_operator() -> subprocess.Popen[bytes]:
    paths = [VCJOB, "cluster", "kubeconfig", "--name", CLUSTER, "--operator"]
    kubeconfig = subprocess.run([str(w) for w in paths], check=True, capture_output=True, text=True).stdout.strip()
    health, log = free_port(), Path(kubeconfig).with_name("operator.log")
    command = [VCJOB, "operator", "--kubeconfig", kubeconfig, "--health-bind-address", f"127.0.0.1:{health}"]
    command += ["--metrics-bind-address", "0"]
    with log.open("wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out, cwd=ROOT)

    def is_ready() -> bool:
        if process.poll() is not None:
            raise Failure(f"the operator ended with exit code {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    wait_until("the operator is ready", is_ready)
    print(f"ready, pid {process.pid}")
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def wait_until(what: str, check: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() > deadline:
            raise Failure(f"waited {timeout_s:.0f} s in vain until {what}")
        time.sleep(0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def show(job: str) -> None:
    say("What the user sees")
    kubectl("get", "vcjob", job, "-o", "wide")
    print()
    kubectl("get", "pods,services,configmaps,networkpolicies", "-o", "wide")
    state = read("vcjob", job)["status"]["state"]
    print(f"\nstatus.state: {state['phase']} since {state['lastTransitionTime']}: {state['message']}")
    say("What each container gets: its environment and its hosts files, as the API server holds them")
    data = read("configmap", f"{job}-svc")["data"]
    for pod in kubectl_json("get", "pods", "-l", f"volcano.sh/job-name={job}")["items"]:
        spec = pod["spec"]
        print(f"\n{BOLD}{pod['metadata']['name']}{PLAIN}  hostname {spec['hostname']}.{spec['subdomain']}")
        for entry in spec["containers"][0]["env"]:
            reference = entry.get("valueFrom", {}).get("configMapKeyRef")
            print(f"  {entry['name']}={data[reference['key']] if reference else entry['value']}")
        mounts = [m["mountPath"] for m in spec["containers"][0]["volumeMounts"] if m["name"] == f"{job}-svc"]
        print(f"  {mounts[0]}: {' '.join(sorted(data))}")
    for name in sorted(key for key in data if key.endswith(".host")):
        print(f"\n/etc/volcano/{name}")
        print("\n".join(f"  {line}" for line in data[name].splitlines()))
    say("Events")
    kubectl("get", "events", "--field-selector", f"involvedObject.kind=Job,involvedObject.name={job}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.chdir(ROOT)
    sys.exit(main())

"""`helm test`: apply a Job of two Pods, wait for its end, and say on the way what is seen. Runs in the operator's image."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NAMESPACE = os.environ["TEST_NAMESPACE"]
NAME = f"vcjob-test-{int(time.time())}"
PATIENCE_S = 180
# Each Pod looks at what the plugins env and svc have given to it.
CHECK = """
import os, pathlib
hosts = pathlib.Path("/etc/volcano/worker.host").read_text().split()
assert len(hosts) == 2, hosts
assert hosts[int(os.environ["VC_TASK_INDEX"])].startswith(os.environ["HOSTNAME"] + "."), (hosts, os.environ["HOSTNAME"])
print("I am", os.environ["VC_TASK_INDEX"], "of", hosts)
"""


def call(method: str, path: str, body: object = None) -> dict:
    """Return the API server's answer."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    request = urllib.request.Request(
        f"https://{f'[{host}]' if ':' in host else host}:{port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"},
    )
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        return json.load(answer)


def job() -> dict:
    """Return the Job."""
    container = {
        "name": "main",
        "image": os.environ["TEST_IMAGE"],
        "imagePullPolicy": os.environ["TEST_PULL_POLICY"],
        "command": ["python", "-c", CHECK],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    template = {
        "spec": {
            "restartPolicy": "Never",
            "imagePullSecrets": json.loads(os.environ["TEST_PULL_SECRETS"]),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        }
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": 2,
            "plugins": {"env": [], "svc": []},
            "tasks": [{"name": "worker", "replicas": 2, "template": template}],
        },
    }


def main() -> int:
    """Return the exit code."""
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs"
    try:
        call("POST", jobs, job())
    except urllib.error.HTTPError as error:
        print(f"the Job was refused: {error} {error.read().decode()}")
        return 1
    print(f"Job {NAMESPACE}/{NAME} is applied")
    try:
        phase, seen, end = "", "", time.monotonic() + PATIENCE_S
        while phase not in ("Completed", "Failed", "Aborted", "Terminated") and time.monotonic() < end:
            time.sleep(0.5)
            state = call("GET", f"{jobs}/{NAME}").get("status", {}).get("state", {})
            phase = state.get("phase", "no phase yet: no operator looks at this namespace")
            line = " ".join(filter(None, (phase, state.get("reason"), state.get("message"))))
            if line != seen:
                print(line, flush=True)
                seen = line
        if phase == "Completed":
            return 0
        print(f"the Job is {phase} and not Completed; its Events:")
        selector = f"fieldSelector=involvedObject.name={NAME}"
        for event in call("GET", f"/api/v1/namespaces/{NAMESPACE}/events?{selector}")["items"]:
            print(f"  {event['type']} {event['reason']}: {event['message']}")
        return 1
    finally:
        call("DELETE", f"{jobs}/{NAME}", {"propagationPolicy": "Background"})


sys.exit(main())

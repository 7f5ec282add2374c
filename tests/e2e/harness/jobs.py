"""Jobs for the tests: valid by default, of busybox, changed by arguments."""

from typing import Any, Final

__all__ = ("SLEEP", "command", "job", "task")

SLEEP: Final = "trap 'exit 0' TERM; sleep 3600 & wait"  # ends at once when it is told to


def task(name: str, replicas: int, script: str, **more: Any) -> dict[str, Any]:
    """Return a task whose containers run a shell script; `more` are further fields of the task."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def job(name: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a Job that needs all its Pods; `more` are further fields of the spec."""
    spec = {"minAvailable": sum(t["replicas"] for t in tasks), "tasks": list(tasks), **more}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def command(action: str, target: dict[str, Any]) -> dict[str, Any]:
    """Return a Command to a Job of the cluster."""
    name, uid = target["metadata"]["name"], target["metadata"]["uid"]
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": f"{name}-{action.lower()}"},
        "action": action,
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": uid},
    }

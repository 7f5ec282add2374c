"""Fake nodes: KWOK keeps them Ready, and does to their Pods what a kubelet would, without running anything.

A Pod on a fake node is Running and Ready at once, with an address of its own, and is gone as soon as it is deleted.
These annotations on the Pod ask for something else (durations as in Go: `500ms`, `2s`, `1m30s`):

    vcjob/fake-outcome         Succeeded or Failed: how it ends; Pending: it never starts
    vcjob/fake-exit-code       of every app container when it ends; by default 0 for Succeeded and 1 for Failed
    vcjob/fake-after           how long it runs before that; by default it ends at once
    vcjob/fake-start-after     how long it stays Pending on its node
    vcjob/fake-init-exit-code  its first init container ends with this code, and the Pod fails without running
    vcjob/fake-stop-after      how long it stays Terminating after it is deleted
    vcjob/fake-stop-exit-code  its containers end with this code when it is deleted, as those of a real kubelet do
                               before the Pod goes: the Pod is Failed (or, for 0, Succeeded) for a moment
"""

import importlib.resources
from typing import Any, Final

from vcjob.cluster.api import ApiServer, Refusal

__all__ = ("NODE_LABEL", "scale_fake_nodes", "stages")

NODE_LABEL: Final = "vcjob/fake-node"
# Room for any benchmark: what limits a run must be the operator, never the fake nodes.
_CAPACITY: Final = {
    "cpu": "4000",
    "memory": "16Ti",
    "pods": "20000",
    "ephemeral-storage": "16Ti",
    "nvidia.com/gpu": "1000",
}


def stages() -> str:
    """Return KWOK's configuration: the life of a Pod on a fake node, as YAML."""
    return importlib.resources.files("vcjob.cluster").joinpath("stages.yaml").read_text()


def scale_fake_nodes(api: ApiServer, *, count: int) -> None:
    """Create or delete fake nodes until there are exactly `count`."""
    there = {node["metadata"]["name"] for node in api.call("GET", f"/api/v1/nodes?labelSelector={NODE_LABEL}")["items"]}
    wanted = {f"fake-{index}" for index in range(count)}
    for name in sorted(wanted - there):
        api.call("POST", "/api/v1/nodes", body=_node(name), accept={Refusal.EXISTS})
    for name in sorted(there - wanted):
        api.call("DELETE", f"/api/v1/nodes/{name}", accept={Refusal.MISSING})


def _node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                NODE_LABEL: "true",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY},
    }

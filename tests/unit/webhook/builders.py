"""Admission reviews as the API server writes them: valid by default, changed by arguments."""

import json
from typing import Any

__all__ = ("QUEUES", "review_body", "review_of_group", "review_of_queue")

Raw = dict[str, Any]

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def review_body(
    operation: str = "CREATE", *, new: Raw | None = None, old: Raw | None = None, plural: str = "jobs", **fields: Any
) -> bytes:
    """Return the body of a request; `fields` are further fields of the request, None removes one."""
    request = {
        "uid": "u-1",
        "kind": {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"},
        "resource": {"group": "batch.volcano.sh", "version": "v1alpha1", "resource": plural},
        "name": "train",
        "namespace": "team",
        "operation": operation,
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **fields,
    }
    kept = {key: value for key, value in request.items() if value is not None}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": kept}).encode()


def review_of_queue(operation: str = "CREATE", *, new: Raw | None = None, old: Raw | None = None) -> bytes:
    """Return a request about a Queue."""
    return _of_scheduling("queues", operation, new=new, old=old, namespace=None)


def review_of_group(new: Raw) -> bytes:
    """Return a request about a new PodGroup."""
    return _of_scheduling("podgroups", "CREATE", new=new, old=None, namespace="team")


def _of_scheduling(plural: str, operation: str, *, new: Raw | None, old: Raw | None, namespace: str | None) -> bytes:
    resource = {"group": "scheduling.volcano.sh", "version": "v1beta1", "resource": plural}
    return review_body(operation, new=new, old=old, resource=resource, namespace=namespace)

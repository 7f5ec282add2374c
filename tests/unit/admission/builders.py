"""Raw Jobs, Queues and PodGroups for the tests of admission: valid by default, changed by copy."""

from copy import deepcopy
from typing import Any

__all__ = ("RawJob", "group", "job", "queue", "task")

Raw = dict[str, Any]


def task(name: str | None = "worker", replicas: Any = 2, **fields: Any) -> Raw:
    """Return a task with one container."""
    container = {"name": "main", "image": "busybox:1.36"}
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    named = {} if name is None else {"name": name}
    return {**named, "replicas": replicas, "template": template, **fields}


class RawJob:
    """Builds a raw Job; each method returns a changed copy."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    def make(self) -> Raw:
        """Return the Job."""
        return deepcopy(self._raw)

    def named(self, name: str) -> "RawJob":
        """Give the Job a name."""
        raw = self.make()
        raw["metadata"]["name"] = name
        return RawJob(raw)

    def spec(self, **fields: Any) -> "RawJob":
        """Set fields of the spec; None removes one."""
        raw = self.make()
        merged = raw["spec"] | fields
        raw["spec"] = {name: value for name, value in merged.items() if value is not None}
        return RawJob(raw)

    def tasks(self, *tasks: Any) -> "RawJob":
        """Replace the tasks."""
        return self.spec(tasks=list(tasks))

    def task(self, **fields: Any) -> "RawJob":
        """Set fields of the first task; None removes one."""
        first, *others = self.make()["spec"]["tasks"]
        changed = {name: value for name, value in (first | fields).items() if value is not None}
        return self.tasks(changed, *others)

    def policies(self, *policies: Raw) -> "RawJob":
        """Set the policies of the Job."""
        return self.spec(policies=list(policies))

    def plugins(self, *names: str, **args: list[str]) -> "RawJob":
        """Set the plugins."""
        return self.spec(plugins={**{name: [] for name in names}, **args})

    def pod(self, **fields: Any) -> "RawJob":
        """Set fields of the first task's Pod spec; None removes one."""
        template = self.make()["spec"]["tasks"][0]["template"]
        merged = template["spec"] | fields
        template["spec"] = {name: value for name, value in merged.items() if value is not None}
        return self.task(template=template)

    def container(self, **fields: Any) -> "RawJob":
        """Set fields of the first task's container; None removes one."""
        first = self.make()["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
        return self.pod(containers=[{name: value for name, value in (first | fields).items() if value is not None}])

    def volumes(self, *volumes: Raw) -> "RawJob":
        """Set the claims of the Job."""
        return self.spec(volumes=list(volumes))


def job() -> RawJob:
    """Return a Job as a user writes it, with one task `worker` of two replicas."""
    return RawJob(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "team"},
            "spec": {"tasks": [task()]},
        }
    )


def queue(name: str = "science", *, hierarchy: tuple[str, str] | None = None, **fields: Any) -> Raw:
    """Return a Queue; `state` and `pods` are of its status, `guarantee` the amounts, all else is of its spec."""
    status = {"state": fields.pop("state", None), "allocated": {"pods": fields.pop("pods", None)}}
    if "guarantee" in fields:
        fields["guarantee"] = {"resource": fields["guarantee"]}
    annotations = {}
    if hierarchy:
        path, weights = hierarchy
        annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {k: v for k, v in annotations.items() if v}},
        "spec": {"weight": 1, "reclaimable": True, **fields},
        "status": {
            "state": status["state"] or "Open",
            "allocated": {k: v for k, v in status["allocated"].items() if v is not None},
        },
    }


def group(*, job: str = "", **spec: Any) -> Raw:
    """Return a PodGroup, controlled by the Job of a name when one is given."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": "u", "controller": True}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team", **({"ownerReferences": [owner]} if job else {})},
        "spec": {"minMember": 1, "queue": "default", **spec},
    }

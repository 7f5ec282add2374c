"""Builders for the tests of the plugins: a Job that is valid by default and changes by copy."""

import copy
from typing import Any, Self

from vcjob.api.job import Job
from vcjob.plugins.base import Plugin, PodDraft, WantedObject
from vcjob.plugins.preview import preview_pod
from vcjob.plugins.registry import enabled_plugins


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Return a container of a template."""
    return {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", "sleep 3600"], **fields}


class JobBuilder:
    """Collects the parts of a Job; every method returns a changed copy."""

    def __init__(self, name: str) -> None:
        self._raw: dict[str, Any] = {
            "metadata": {"name": name, "namespace": "ns", "uid": "uid-1"},
            "spec": {"plugins": {}, "tasks": []},
        }

    def plugin(self, name: str, *arguments: str) -> Self:
        new = copy.deepcopy(self)
        new._raw["spec"]["plugins"][name] = list(arguments)
        return new

    def task(self, name: str, replicas: int, *containers: dict[str, Any], **spec: Any) -> Self:
        """Add a task; without containers it has one, keywords go into the Pod spec."""
        new = copy.deepcopy(self)
        pod_spec = {"containers": list(containers) or [container()], **spec}
        new._raw["spec"]["tasks"].append({"name": name, "replicas": replicas, "template": {"spec": pod_spec}})
        return new

    def annotated(self, annotations: dict[str, str]) -> Self:
        """Set the annotations of the last task's template."""
        new = copy.deepcopy(self)
        new._raw["spec"]["tasks"][-1]["template"]["metadata"] = {"annotations": annotations}
        return new

    def make(self) -> Job:
        return Job.model_validate(self._raw)

    def pod(self, task: str, index: int = 0) -> PodDraft:
        """Return the draft of one Pod, edited by all plugins of the Job."""
        made = self.make()
        found = made.task(task)
        assert found is not None
        return preview_pod(made, task=found, index=index)

    def env(self, task: str, index: int = 0) -> dict[str, Any]:
        """Return the literal variables of the first container of a Pod."""
        entries = self.pod(task, index).containers[0].get("env", ())
        return {entry["name"]: entry.get("value") for entry in entries}

    def one(self, plugin: str) -> Plugin:
        """Return the instance of one plugin."""
        return next(found for found in enabled_plugins(self.make()) if found.name == plugin)

    def objects(self) -> dict[str, WantedObject]:
        """Return what the Job wants, by `Kind/name`."""
        wanted = [found for plugin in enabled_plugins(self.make()) for found in plugin.on_job_add()]
        return {f"{found.ref.kind}/{found.ref.name}": found for found in wanted}

    def messages(self) -> list[str]:
        """Return the texts of all notes on the Job."""
        return [note.message for plugin in enabled_plugins(self.make()) for note in plugin.notes()]

    def problems(self) -> list[str]:
        return [problem for plugin in enabled_plugins(self.make()) for problem in plugin.problems()]


def job(name: str = "train") -> JobBuilder:
    """Begin a Job."""
    return JobBuilder(name)

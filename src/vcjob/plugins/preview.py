"""What a Pod and its containers get from the plugins of a Job, worked out without a cluster. Pure.

For the documentation, for offline looks and for tests: labels and annotations are those of the template only.
"""

from base64 import b64decode
from collections.abc import Iterable

from vcjob.api.job import Job, Task

from .base import Manifest, PodDraft, WantedObject
from .registry import enabled_plugins

__all__ = ("data_of", "preview_pod", "visible_env")


def preview_pod(job: Job, *, task: Task, index: int) -> PodDraft:
    """Return the draft of a Pod as the Job's plugins leave it."""
    metadata = task.template.get("metadata") or {}
    pod = PodDraft(
        name=f"{job.name}-{task.name}-{index}",
        task=task,
        index=index,
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
    )
    for plugin in enabled_plugins(job):
        plugin.on_pod_create(pod)
    return pod


def visible_env(container: Manifest, wanted: Iterable[WantedObject]) -> dict[str, str]:
    """Return the variables of a container; of entries with one name the last counts.

    References to the plugins' own objects are resolved; others are shown as `(from …)`.
    """
    objects = {(found.ref.kind, found.ref.name): found for found in wanted}
    seen: dict[str, str] = {}
    for entry in container.get("env") or ():
        seen.pop(entry["name"], None)
        seen[entry["name"]] = _value_of(entry, objects)
    return seen


def data_of(wanted: WantedObject) -> dict[str, str]:
    """Return the data of a ConfigMap or Secret as a container reads it, without keys still to be made."""
    data = wanted.manifest.get("data") or {}
    if wanted.ref.kind == "Secret":
        return {key: b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def _value_of(entry: Manifest, objects: dict[tuple[str, str], WantedObject]) -> str:
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if reference := source.get(field):
            found = objects.get((kind, reference["name"]))
            if found and reference["key"] in data_of(found):
                return data_of(found)[reference["key"]]
            return f"(from {kind} {reference['name']}, key {reference['key']})"
    return f"(from {', '.join(source)})"

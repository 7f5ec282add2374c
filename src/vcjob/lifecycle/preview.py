"""Every object that the operator would make for a Job, worked out without a cluster. Pure.

The Job has no UID and no history here, so the objects are those of its first run; keys that are made by chance are
shown as words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from vcjob.gang.base import Gang, GroupWish
from vcjob.plugins.preview import data_of

from .census import Member
from .render import PodRenderer, RenderedPod
from .revision import Revision
from .volumes import claim_name

__all__ = ("NO_UID", "Preview", "preview_job")

NO_UID: Final = "00000000-0000-0000-0000-000000000000"
_MADE_LATER: Final = "(made when the Job is created)"
_SECRET_KEYS: Final = ("id_rsa", "id_rsa.pub", "authorized_keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The objects of a Job in the order in which they would be made."""

    objects: tuple[dict[str, Any], ...]
    pods: tuple[RenderedPod, ...]


def preview_job(revision: Revision, *, gang: Gang) -> Preview:
    """Return what the operator would make. Raises what a plugin raises."""
    renderer = PodRenderer(revision, gang=gang, version=0, retry_count=0)
    members = (Member(task=c.task.name, index=i) for c in revision.tasks for i in range(c.task.replicas))
    return Preview(
        objects=tuple(_objects(revision, gang)),
        pods=tuple(renderer.render(member) for member in members),
    )


def _objects(revision: Revision, gang: Gang) -> Iterator[dict[str, Any]]:
    job = revision.job
    owner = {"namespace": job.namespace, "ownerReferences": [job.owner_reference()]}
    for index, volume in enumerate(job.spec.volumes):
        if volume.volume_claim:
            metadata = {"name": claim_name(job, index), **owner}
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": volume.volume_claim,
            }
    for item in revision.objects:
        wanted = item.wanted
        manifest = dict(wanted.manifest)
        if wanted.ref.kind == "Secret":  # in words: the API server stores stringData as data
            given = data_of(wanted)
            made = {key: _MADE_LATER for key in _SECRET_KEYS if wanted.generate and key not in given}
            manifest = {key: value for key, value in manifest.items() if key != "data"} | {"stringData": made | given}
        metadata = {**manifest.get("metadata", {}), "name": wanted.ref.name, **owner}
        yield {"apiVersion": wanted.ref.api_version, "kind": wanted.ref.kind, "metadata": metadata} | {
            key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")
        }
    if group := gang.wanted_group(job, GroupWish(job_version=0)):
        yield {**group, "metadata": {**group["metadata"], **owner}}

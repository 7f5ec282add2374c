"""The Jobs as the API server holds them, with what was compiled from their specs.

A record is one version of a Job. What follows from the spec alone is compiled once and handed on from version to
version, because most versions differ in the status only.
"""

from dataclasses import dataclass, field
from typing import Any

from vcjob.api.base import InvalidObject
from vcjob.api.names import BATCH_GROUP
from vcjob.lifecycle.revision import Revision, broken_revision, compile_job
from vcjob.lifecycle.status import Status, parse_time

__all__ = ("JobRecord", "job_path", "make_record")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One version of a Job."""

    namespace: str
    name: str
    uid: str
    version: int  # resourceVersion
    deleting: bool
    created: float  # seconds since the epoch
    raw_status: dict[str, Any]
    status: Status
    revision: Revision
    _spec_key: tuple[Any, ...] = field(compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def path(self) -> str:
        return job_path(self.namespace, self.name)


def job_path(namespace: str, name: str) -> str:
    """Return the API path of a Job."""
    return f"/apis/{BATCH_GROUP}/v1alpha1/namespaces/{namespace}/jobs/{name}"


def make_record(raw: dict[str, Any], previous: JobRecord | None) -> JobRecord:
    """Make the record of a raw Job, with the compiled spec of `previous` when that is still right."""
    meta = raw["metadata"]
    key = (meta["uid"], meta.get("generation"), meta.get("labels"), meta.get("annotations"))
    revision = previous.revision if previous is not None and previous._spec_key == key else _compile(raw)
    status = raw.get("status")
    return JobRecord(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        deleting=meta.get("deletionTimestamp") is not None,
        created=parse_time(meta.get("creationTimestamp")) or 0.0,
        raw_status=status if isinstance(status, dict) else {},
        status=Status.read(status),
        revision=revision,
        _spec_key=key,
    )


def _compile(raw: dict[str, Any]) -> Revision:
    try:
        return compile_job(raw)
    except InvalidObject as error:
        return broken_revision(raw, error)

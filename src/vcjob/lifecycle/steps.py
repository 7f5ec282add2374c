"""What a pass can do to the cluster, as values. Pure; the controller's executor knows how each is done.

Every step may be repeated, and may be interrupted before or after its write, with the same outcome.
"""

from dataclasses import dataclass
from typing import Any

from vcjob.gang.base import Group
from vcjob.plugins.base import ObjectRef

from .census import Member
from .pod import Pod
from .revision import PluginObject

__all__ = (
    "AnnotateJob",
    "ApplyObject",
    "CheckClaim",
    "CreateClaim",
    "CreateGroup",
    "CreatePods",
    "DeleteGroup",
    "DeleteJob",
    "DeleteObject",
    "DeletePods",
    "PatchGroup",
    "PatchJob",
    "Stage",
    "Step",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchJob:
    """Record something in the Job itself: the names of generated claims. `patch` is a JSON patch."""

    patch: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateJob:
    """Add annotations to the Job itself."""

    annotations: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckClaim:
    """See whether the claim is there."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClaim:
    """Make a claim that the Job owns."""

    name: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyObject:
    """Make a plugin's object, or bring the one that the Job owns up to date."""

    item: PluginObject
    version: int  # status.version: after a restart everything is looked at once more
    expected: bool  # it has been made before, so look first


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete a plugin's object if the Job owns it."""

    ref: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGroup:
    """Make the group."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchGroup:
    """Bring the group up to date."""

    group: Group
    patch: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """Delete the group of this UID."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods:
    """Delete Pods. With `mark` each is marked first, so that its end is never taken for an eviction."""

    pods: tuple[Pod, ...]
    mark: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePods:
    """Make Pods; they are rendered one by one as they are sent."""

    members: tuple[Member, ...]
    version: int
    retry_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Delete the finished Job whose time to live has passed."""


Step = (
    PatchJob
    | AnnotateJob
    | CheckClaim
    | CreateClaim
    | ApplyObject
    | DeleteObject
    | CreateGroup
    | PatchGroup
    | DeleteGroup
    | DeletePods
    | CreatePods
    | DeleteJob
)
Stage = tuple[Step, ...]

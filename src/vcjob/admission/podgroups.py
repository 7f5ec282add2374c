"""PodGroups: the Queue of one that names none, and the rules of its topology. Pure; never raises.

Whether the Queue takes it is asked of `queues`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vcjob.api.base import InvalidObject, parse
from vcjob.api.names import ANNOTATION_NAMESPACE_QUEUE, BATCH_GROUP, DEFAULT_QUEUE, JOB_KIND
from vcjob.api.podgroup import PodGroup

from .problem import Problem, refused
from .raw import entries, mapping, spec_patch, text
from .tasks import check_topology

__all__ = ("belongs_to_job", "podgroup_patch", "podgroup_queue", "validate_podgroup")

Raw = Mapping[str, Any]


def podgroup_queue(raw: Raw) -> str:
    """Return the name of the Queue that a PodGroup goes to."""
    return text(mapping(raw, "spec"), "queue") or DEFAULT_QUEUE


def belongs_to_job(raw: Raw) -> bool:
    """Whether a Job controls the PodGroup."""
    return any(
        owner.get("controller") is True
        and text(owner, "kind") == JOB_KIND
        and text(owner, "apiVersion").startswith(f"{BATCH_GROUP}/")
        for _, owner in entries(mapping(raw, "metadata"), "ownerReferences")
    )


def podgroup_patch(raw: Raw, *, namespace: Raw) -> tuple[dict[str, Any], ...]:
    """Return the JSON patch that sends a new PodGroup of the default Queue to the one that its Namespace names."""
    wanted = text(mapping(namespace, "metadata", "annotations"), ANNOTATION_NAMESPACE_QUEUE)
    if wanted in ("", DEFAULT_QUEUE) or podgroup_queue(raw) != DEFAULT_QUEUE:
        return ()
    return spec_patch(raw, {"queue": wanted})


def validate_podgroup(raw: dict[str, Any]) -> tuple[Problem, ...]:
    """Return why the PodGroup may not be made; nothing when it may, as far as its Queue takes it."""
    try:
        group = parse(PodGroup, raw)
    except InvalidObject as error:
        return (refused(error.field, None, message=error.problem),)
    return tuple(_problems(group))


def _problems(group: PodGroup) -> Iterator[Problem]:
    yield from check_topology(group.spec.network_topology, field="spec.networkTopology")
    for index, policy in enumerate(group.spec.sub_group_policy):
        yield from check_topology(policy.network_topology, field=f"spec.subGroupPolicy[{index}].networkTopology")

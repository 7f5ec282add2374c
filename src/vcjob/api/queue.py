"""The Queue of `scheduling.volcano.sh/v1beta1`: a share of the cluster that Jobs wait for. Pure."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from .base import DNS_NAME, Count, Int32, Model, ObjectMeta, null_as
from .resources import ResourceList

__all__ = (
    "ROOT_QUEUE",
    "ExtendCluster",
    "Guarantee",
    "NodeGroupAffinity",
    "Queue",
    "QueueAffinity",
    "QueueSpec",
    "QueueState",
    "QueueStatus",
    "Reservation",
)

ROOT_QUEUE: Final = "root"

Text = Annotated[str, null_as("")]
Names = Annotated[tuple[str, ...], null_as(())]


class QueueState(StrEnum):
    """`status.state` of a Queue; Jobs are taken only by an open one."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class ExtendCluster(Model):
    """Another cluster that Jobs of the queue may be forwarded to."""

    name: Text = Field("", description="Name of the cluster.")
    weight: Int32 = Field(0, description="Its share among the other clusters.")
    capacity: Annotated[ResourceList, null_as({})] = Field(default_factory=dict, description="What it has.")


class Guarantee(Model):
    """What is kept for the queue even while it is empty."""

    resource: Annotated[ResourceList, null_as({})] = Field(default_factory=dict, description="The amounts.")


class NodeGroupAffinity(Model):
    """Node groups by name."""

    required: Names = Field(
        (), alias="requiredDuringSchedulingIgnoredDuringExecution", description="Node groups that must (not) be used."
    )
    preferred: Names = Field(
        (), alias="preferredDuringSchedulingIgnoredDuringExecution", description="Node groups to prefer (or avoid)."
    )


class QueueAffinity(Model):
    """Which node groups the queue's Pods run on."""

    node_group_affinity: NodeGroupAffinity | None = Field(None, description="Groups to use.")
    node_group_anti_affinity: NodeGroupAffinity | None = Field(None, description="Groups to stay away from.")


class QueueSpec(Model):
    """The share of a queue."""

    weight: Annotated[int, Field(ge=-(2**31), lt=2**31), null_as(1)] = Field(
        1,
        description="The share of the queue in proportion to its siblings.",
        json_schema_extra={"x-default": 1, "minimum": 1, "maximum": 65535},
    )
    capability: Annotated[ResourceList, null_as({})] = Field(
        default_factory=dict, description="What all its Pods together may use at most."
    )
    reclaimable: bool | None = Field(None, description="Whether other queues may take back what this one borrowed.")
    extend_clusters: Annotated[tuple[ExtendCluster, ...], null_as(())] = Field(
        (), description="Other clusters that its Jobs may be forwarded to."
    )
    guarantee: Guarantee | None = Field(None, description="What is kept for the queue even while it is empty.")
    affinity: QueueAffinity | None = Field(None, description="Which node groups its Pods run on.")
    type: Text = Field("", description="Free text.", json_schema_extra={"maxLength": 253})
    parent: Text = Field(
        "",
        description="The queue above it; `root` when empty.",
        json_schema_extra={"pattern": DNS_NAME, "maxLength": 253},
    )
    deserved: Annotated[ResourceList, null_as({})] = Field(
        default_factory=dict, description="What it should get when all queues are busy."
    )
    priority: Count = Field(0, description="Queues of higher priority are served first.")
    dequeue_strategy: Annotated[str, null_as("traverse")] = Field(
        "traverse",
        description="fifo: a Job that cannot be placed holds up those behind it; traverse: it does not.",
        json_schema_extra={"enum": ["fifo", "traverse"], "x-default": "traverse"},
    )


class Reservation(Model):
    """Nodes that are locked for the queue."""

    nodes: Names = Field((), description="Their names.")
    resource: Annotated[ResourceList, null_as({})] = Field(default_factory=dict, description="What they have in all.")


class QueueStatus(Model):
    """What the queue holds now."""

    state: Text = Field(
        "",
        description="Open queues take new Jobs; a closing one lets those that it has end.",
        json_schema_extra={"enum": [state.value for state in QueueState]},
    )
    unknown: Int32 = Field(0, description="PodGroups of unknown phase.")
    pending: Int32 = Field(0, description="PodGroups that wait.")
    running: Int32 = Field(0, description="PodGroups that run.")
    inqueue: Int32 = Field(0, description="PodGroups whose Pods may be created.")
    completed: Int32 = Field(0, description="PodGroups that have ended.")
    reservation: Reservation | None = Field(None, description="Nodes that are locked for the queue.")
    allocated: Annotated[ResourceList, null_as({})] = Field(
        default_factory=dict, description="What its Pods use in all."
    )


class Queue(Model):
    """A share of the cluster that Jobs wait for."""

    api_version: Literal["scheduling.volcano.sh/v1beta1"] = "scheduling.volcano.sh/v1beta1"
    metadata: ObjectMeta
    spec: Annotated[QueueSpec, null_as({})] = Field(default_factory=QueueSpec, description="The share of the queue.")
    status: Annotated[QueueStatus, null_as({})] = Field(default_factory=QueueStatus, description="What it holds now.")

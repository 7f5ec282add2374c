"""The PodGroup of `scheduling.volcano.sh/v1beta1`: what the gang scheduler must place together. Pure."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from .base import DNS_NAME, Count, Model, ObjectMeta, null_as
from .names import DEFAULT_QUEUE
from .resources import ResourceList
from .topology import NetworkTopology

__all__ = ("PodGroup", "PodGroupCondition", "PodGroupPhase", "PodGroupSpec", "PodGroupStatus", "SubGroupPolicy")

LabelSelector = Annotated[
    dict[str, Any], WithJsonSchema({"x-core": "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"})
]
Text = Annotated[str, null_as("")]


class PodGroupPhase(StrEnum):
    """`status.phase` of a PodGroup; the scheduler sets it."""

    PENDING = "Pending"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    INQUEUE = "Inqueue"
    COMPLETED = "Completed"


class SubGroupPolicy(Model):
    """Members of the group that are placed in parts of equal size."""

    name: Text = Field("", json_schema_extra={"maxLength": 253}, description="Name of the policy.")
    network_topology: NetworkTopology | None = Field(None, description="How near to each other one part runs.")
    sub_group_size: Count | None = Field(
        None, description="Pods in one part.", json_schema_extra={"minimum": 1, "x-default": 1}
    )
    min_sub_groups: Count | None = Field(
        None, description="Parts that must be placed at least.", json_schema_extra={"x-default": 0}
    )
    label_selector: LabelSelector | None = Field(None, description="Which Pods of the group the policy is for.")
    match_label_keys: Annotated[tuple[str, ...], null_as(())] = Field(
        (),
        description="Pods with equal values of these labels form one part.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class PodGroupSpec(Model):
    """What must be placed together, and where."""

    min_member: Count = Field(0, description="How many Pods must be placed together, or none is.")
    min_task_member: Annotated[dict[str, Annotated[int, Field(ge=-(2**31), lt=2**31)]], null_as({})] = Field(
        default_factory=dict, description="The same for each task by name."
    )
    queue: Annotated[str, null_as(DEFAULT_QUEUE)] = Field(
        DEFAULT_QUEUE,
        description="The queue whose share the group uses.",
        json_schema_extra={"x-default": DEFAULT_QUEUE, "pattern": DNS_NAME, "maxLength": 253},
    )
    priority_class_name: Text = Field(
        "", description="The priority of the group among others.", json_schema_extra={"maxLength": 253}
    )
    min_resources: Annotated[ResourceList, null_as({})] = Field(
        default_factory=dict, description="What the least number of members asks for in all."
    )
    network_topology: NetworkTopology | None = Field(None, description="How near to each other all members run.")
    sub_group_policy: Annotated[tuple[SubGroupPolicy, ...], null_as(())] = Field(
        (), description="Members that are placed in parts of equal size."
    )


class PodGroupCondition(Model):
    """Why the group could or could not be placed, as the scheduler saw it last."""

    type: Text = Field("", description="Unschedulable or Scheduled.")
    status: Text = Field("", description="True, False or Unknown.")
    transition_id: Text = Field("", alias="transitionID", description="The scheduling cycle that wrote it.")
    last_transition_time: Annotated[str | None, WithJsonSchema({"type": "string", "format": "date-time"})] = Field(
        None, description="When it changed last."
    )
    reason: Text = Field("", description="Why, as one CamelCase word.")
    message: Text = Field("", description="Why, for people.")


class PodGroupStatus(Model):
    """How far the group has come; written by the scheduler."""

    phase: Text = Field(
        "",
        description="Pods of a Job are created once the phase is neither empty nor Pending.",
        json_schema_extra={"enum": [phase.value for phase in PodGroupPhase]},
    )
    conditions: Annotated[tuple[PodGroupCondition, ...], null_as(())] = Field(
        (), description="What the scheduler said last."
    )
    running: Count = Field(0, description="Members that run.")
    succeeded: Count = Field(0, description="Members that ended well.")
    failed: Count = Field(0, description="Members that failed.")


class PodGroup(Model):
    """Pods that the gang scheduler places together or not at all."""

    api_version: Literal["scheduling.volcano.sh/v1beta1"] = "scheduling.volcano.sh/v1beta1"
    metadata: ObjectMeta
    spec: Annotated[PodGroupSpec, null_as({})] = Field(
        default_factory=PodGroupSpec, description="What must be placed together."
    )
    status: Annotated[PodGroupStatus, null_as({})] = Field(
        default_factory=PodGroupStatus, description="How far it has come."
    )

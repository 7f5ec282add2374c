"""The status of a Job as the CRD describes it. Pure.

Only the schema is made from these models; the operator reads and writes a status by the rules of its lifecycle.
"""

from typing import Annotated, Final

from pydantic import Field, JsonValue, WithJsonSchema

from .base import Count, Model
from .duration import DURATION_PATTERN
from .job import Job, Phase

__all__ = ("JobCondition", "JobState", "JobStatus", "JobWithStatus", "TaskState")

PHASES: Final[list[JsonValue]] = [phase.value for phase in Phase]
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Int32Map = Annotated[
    dict[str, int],
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}}),
]


class JobState(Model):
    """Where the Job is in its life, and why."""

    phase: str = Field("", description="Where the Job is in its life.", json_schema_extra={"enum": PHASES})
    reason: str = Field("", description="Why, as one CamelCase word.")
    message: str = Field("", description="Why, for people: which Pod, container and exit code, and what is awaited.")
    last_transition_time: Time | None = Field(None, description="When the phase changed last.")


class TaskState(Model):
    """Pods of one task."""

    phase: Int32Map = Field(default_factory=dict, description="How many Pods of the task are in each phase.")


class JobCondition(Model):
    """A phase that the Job went through."""

    status: str = Field(description="The phase.", json_schema_extra={"enum": PHASES})
    last_transition_time: Time | None = Field(None, description="When the Job came into it.")


class JobStatus(Model):
    """What has become of the Job; written by the operator."""

    state: JobState | None = Field(None, description="Where the Job is in its life, and why.")
    min_available: Count = Field(0, description="How many Pods must run.")
    task_status_count: dict[str, TaskState] = Field(default_factory=dict, description="Pods by task and phase.")
    pending: Count = Field(0, description="Pods that wait.")
    running: Count = Field(0, description="Pods that run.")
    succeeded: Count = Field(0, description="Pods that ended well.")
    failed: Count = Field(0, description="Pods that failed.")
    terminating: Count = Field(0, description="Pods that are being deleted.")
    unknown: Count = Field(0, description="Pods whose node has not been heard of.")
    version: Count = Field(0, description="Grows with each kill; Pods carry the version that they were made for.")
    retry_count: Count = Field(0, description="How often the Job was restarted.")
    running_duration: str | None = Field(
        None, description="How long the Job ran, set at its end.", json_schema_extra={"pattern": DURATION_PATTERN}
    )
    controlled_resources: dict[str, str] = Field(
        default_factory=dict, description="Claims and plugin objects that exist for the Job."
    )
    conditions: tuple[JobCondition, ...] = Field((), description="The phases that the Job went through, last one last.")


class JobWithStatus(Job):
    """A gang of Pods made of tasks."""

    status: JobStatus | None = Field(None, description="What has become of the Job.")

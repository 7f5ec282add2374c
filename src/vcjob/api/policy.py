"""Lifecycle policies: when something happens to a Pod or a task, do something with the Job. Pure."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from .base import Int32, Model, null_as
from .duration import DURATION_PATTERN

__all__ = ("POLICY_EVENTS", "VALID_ACTIONS", "VALID_EVENTS", "Action", "Event", "LifecyclePolicy")


class Action(StrEnum):
    """What a lifecycle policy or a Command can ask for."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class Event(StrEnum):
    """What a lifecycle policy can react to."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UPDATED = "JobUpdated"  # accepted by admission, never produced


VALID_ACTIONS: Final = f"valid actions are [{', '.join(Action)}]"
VALID_EVENTS: Final = f"valid events are [{', '.join(Event)}]"
# The schema knows more words than a policy may use: admission tells the difference with a better message.
POLICY_EVENTS: Final = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)


class LifecyclePolicy(Model):
    """When `event` (or one of `events`, or `exitCode`) happens, do `action`, after `timeout` when given."""

    model_config = ConfigDict(json_schema_extra={"required": ["action"]})

    action: Annotated[str, null_as("")] = Field(
        "",
        description="What to do: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, "
        "CompleteJob or ResumeJob.",
        json_schema_extra={"maxLength": 63},
    )
    event: Annotated[str, null_as("")] = Field(
        "",
        description="What it reacts to: PodFailed, PodEvicted, PodPending (with a timeout), Unknown, TaskCompleted, "
        "TaskFailed, or * for all of them. Not together with exitCode.",
        json_schema_extra={"enum": list(POLICY_EVENTS)},
    )
    events: Annotated[tuple[str, ...], null_as(())] = Field(
        (),
        description="Several events with one action.",
        json_schema_extra={"items": {"type": "string", "enum": list(POLICY_EVENTS)}},
    )
    exit_code: Int32 | None = Field(
        None, description="React to a container that ended with this code, which is not 0. Not together with event."
    )
    timeout: str | None = Field(
        None,
        description="Wait so long (30s, 5m, 1h30m), and act only if the cause is still there.",
        json_schema_extra={"pattern": DURATION_PATTERN},
    )

"""What a pass came to: stages, status, events and the time of the next look. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from .counters import Counters
from .status import Status
from .steps import Stage

__all__ = ("NOTHING", "EventNote", "Plan", "Write", "earliest", "with_counters")


class Write(Enum):
    """When the plan's status is written."""

    REPLAN = "replan"  # after the stages another plan says what to write
    FIRST = "first"  # before the stages: a decision
    EARLY = "early"  # before the stages, if nobody is kept waiting by it; another plan follows as with REPLAN
    AFTER = "after"  # after the stages, as it stands, if none was refused


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNote:
    """A Kubernetes Event about the Job.

    A standing one tells of a state, so every plan repeats it; it is told once for as long as it holds.
    """

    type: str  # Normal or Warning
    reason: str
    message: str
    standing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now. `status` None leaves the Job's status alone; `wake` is when to look again without a cause."""

    status: Status | None
    stages: tuple[Stage, ...] = ()
    write: Write = Write.REPLAN
    events: tuple[EventNote, ...] = ()
    wake: float | None = None  # seconds since the epoch
    seen: Mapping[str, float] | None = None  # causes to remember: key -> when first noticed


NOTHING: Final = Plan(status=None)


def earliest(*times: float | None) -> float | None:
    """Return the first of the times that are given."""
    return min((time for time in times if time is not None), default=None)


def with_counters(status: Status, counters: Counters) -> Status:
    """Return the status with the numbers of these Pods."""
    return replace(
        status,
        pending=counters.pending,
        running=counters.running,
        succeeded=counters.succeeded,
        failed=counters.failed,
        terminating=counters.terminating,
        unknown=counters.unknown,
        task_counts=counters.tasks,
    )

"""A status write that may or may not have taken effect, because its answer never came.

A decision must be carried out once. One that a policy asked for is fenced by what the status says; one that a Command
asked for is not, for the Command is gone from the API server. So before anything else is decided, the Job is read and
compared with what was to be written.
"""

from dataclasses import dataclass
from typing import Final

from vcjob.api.job import Phase
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.status import Status

__all__ = ("DOUBT_S", "Doubt")

DOUBT_S: Final = 60.0  # no write without an answer takes effect as late: a request is given up much sooner


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What was to be written, and what it would have meant."""

    since: float  # seconds since the epoch
    before: Phase | None
    status: Status
    events: tuple[EventNote, ...]
    by_command: bool

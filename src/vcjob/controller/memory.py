"""What the controller remembers of each Job between passes. Losing it costs some reads, never correctness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.pod import Pod
from vcjob.lifecycle.revision import Revision
from vcjob.lifecycle.snapshot import Command, Hold, Memory

from .doubt import Doubt

__all__ = ("JobMemory", "Stored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A plugin's object as it was last seen."""

    uid: str
    version: str | None = None  # resourceVersion; None: any


@dataclass(slots=True, kw_only=True)
class JobMemory:
    """The mutable twin of the lifecycle's `Memory`, one per Job UID."""

    uid: str
    fresh: bool = True
    verified: bool = False  # the Pods have been listed because the status told of more
    revision: Revision | None = None  # the one that `hold` and `rejected` are about
    told: frozenset[EventNote] = frozenset()  # standing Events of the last plan
    applied: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: dict[tuple[str, str], float] = field(default_factory=dict)  # objects -> when they were last known to be there
    objects: dict[tuple[str, str], Stored] = field(default_factory=dict)  # by kind and name: what we made
    claims: set[str] = field(default_factory=set)
    removed: dict[str, tuple[Pod, float]] = field(default_factory=dict)
    lost_at: float = 0.0
    first_seen: Mapping[str, float] = field(default_factory=dict)
    hold: Hold | None = None
    rejected: str = ""  # the API server will never take the Job's objects
    refusals: int = 0  # in a row
    verdicts: int = 0  # of these, how often the server said that trying again cannot help
    unwritten: dict[str, Any] | None = None  # a status that tells of nothing unexpected and waits for more
    unwritten_since: float = 0.0  # loop time at which the first of it was known
    unwritten_moved: float = 0.0  # loop time of the last
    doubt: Doubt | None = None  # a status write without an answer
    created: int = 0  # Pods of a stage that is not through, of which no Event has told yet
    deleted: int = 0  # the same
    restless: int = 0  # passes in a row that came to no end
    commands: list[Command] = field(default_factory=list)  # taken, not carried out yet
    stuck: bool = False  # a Command waits that may not be deleted

    def freeze(self) -> Memory:
        """Return what a pass may look at."""
        return Memory(
            fresh=self.fresh,
            applied=self.applied,
            seen=self.seen,
            claims=frozenset(self.claims),
            removed=self.removed,
            lost_at=self.lost_at,
            first_seen=self.first_seen,
            hold=self.hold,
            rejected=self.rejected,
        )

"""What one pass looks at. Immutable and complete: `plan` needs nothing else, not even a clock.

All times are seconds since the epoch in the API server's clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vcjob.api.job import Phase
from vcjob.gang.base import Gang, Group

from .pod import Pod
from .restart import RESTART_KEY, Restart
from .revision import Revision
from .status import Status

__all__ = ("NO_MEMORY", "Command", "Hold", "Memory", "Snapshot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A Command that has been taken (deleted), so it must be carried out now or never."""

    action: str
    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Something was refused or is not there yet: it is not tried again until `until`, and the status says why."""

    until: float
    reason: str
    message: str
    deletion: bool = False  # what was refused is a deletion, so those wait too


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What this process remembers of a Job. Losing it costs a few reads, never correctness.

    `applied` maps an object's kind and name to the digest that was last written; `removed` holds Pods that vanished
    without the operator's doing while they were alive, or Failed, which perhaps nobody has seen; `first_seen` says when
    a cause without a time stamp of its own was noticed.
    """

    fresh: bool = True  # first pass of this process
    applied: Mapping[tuple[str, str], str] = field(default_factory=dict)
    seen: Mapping[tuple[str, str], float] = field(default_factory=dict)  # when each object was last known to be there
    claims: frozenset[str] = frozenset()  # known to be there
    removed: Mapping[str, tuple[Pod, float]] = field(default_factory=dict)  # name -> the Pod, and when it was missed
    lost_at: float = 0.0  # when the last Pod vanished, by whomever
    first_seen: Mapping[str, float] = field(default_factory=dict)
    hold: Hold | None = None
    rejected: str = ""  # why the API server will never take the Job's objects


NO_MEMORY: Final = Memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A Job and everything around it at one moment."""

    revision: Revision
    status: Status
    now: float
    created: float  # creation timestamp of the Job
    pods: Mapping[str, Pod]  # every Pod labelled with the Job's name, by name
    gang: Gang
    group: Group | None = None
    queue: Mapping[str, Any] | None = None
    knows_queues: bool = False  # whether a missing Queue means something
    priorities: Mapping[str, int] = field(default_factory=dict)
    command: Command | None = None
    memory: Memory = NO_MEMORY
    deleting: bool = False
    restart: Restart | None = field(init=False)  # the restart that is going on

    def __post_init__(self) -> None:
        object.__setattr__(self, "restart", Restart.read(self.status.controlled.get(RESTART_KEY)))

    @property
    def hold(self) -> Hold | None:
        """Return the refusal that still counts."""
        hold = self.memory.hold
        return hold if hold is not None and hold.until > self.now else None

    @property
    def group_is_old(self) -> bool:
        """Whether the group belongs to an earlier run of the Job.

        A group of version 0 does not say so, and those of Volcano's own controller never do. A Job leaves Restarting
        only when the old group is gone, so in Pending and Running such a group is the present one.
        """
        if self.group is None:
            return False
        if self.group.job_version is None:
            return self.status.version > 0 and self.phase not in (Phase.PENDING, Phase.RUNNING)
        return self.group.job_version < self.status.version

    @property
    def phase(self) -> Phase:
        """Return the phase; a Job that was never looked at counts as Pending."""
        return self.status.phase or Phase.PENDING

"""Gang back ends: who decides when all Pods of a Job may be made together. Pure.

A back end says which scheduler a Pod names, which group object stands for the Job, and whether that group lets Pods be
made. `none` makes them at once; `volcano` waits for its PodGroup. Another gang scheduler is one more module here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from vcjob.api.job import Job
from vcjob.api.names import DEFAULT_SCHEDULER

__all__ = ("Gang", "Group", "GroupWish")


class Group(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group object (PodGroup) as the operator sees it. Times are seconds since the epoch."""

    namespace: str
    name: str
    uid: str
    version: int = 0  # resourceVersion
    owner_uid: str = ""  # UID of the controlling Job
    owner_name: str = ""
    phase: str = ""
    job_version: int | None = None  # status.version of the Job when it was made, if the group says
    deleted: bool = False
    unschedulable: bool = False  # the scheduler's latest word
    condition: str = ""  # type of the latest true condition unless it is Scheduled
    message: str = ""  # of that condition
    since: float | None = None  # when that condition was set
    spec: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def signature(self) -> tuple[object, ...]:
        """Return everything that a decision can depend on."""
        return (
            self.owner_uid,
            self.phase,
            self.deleted,
            self.unschedulable,
            self.condition,
            self.message,
            self.job_version,
            self.spec,
        )

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWish:
    """What the group must say. All that depends on more than the Job's spec is given here."""

    job_version: int  # status.version
    startable: int | None = None  # Pods that can start before any dependency is met; None: all of them
    priorities: Mapping[str, int] = field(default_factory=dict)  # PriorityClass -> value


class Gang(ABC):
    """A gang back end."""

    uses_groups: bool

    def __init__(self, *, gang_scheduler_name: str = DEFAULT_SCHEDULER) -> None:
        """`gang_scheduler_name` is the `schedulerName` that means the gang scheduler."""
        self._gang_scheduler_name = gang_scheduler_name

    @abstractmethod
    def scheduler_name(self, name: str) -> str:
        """Return the `schedulerName` of a Pod whose template or Job says `name`, or neither of them anything ("").

        Empty: the cluster's default.
        """

    @abstractmethod
    def group_name(self, job: Job) -> str:
        """Return the group's name, which every Pod carries as an annotation."""

    @abstractmethod
    def wanted_group(self, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        """Return the group's manifest without owner reference; None when this back end makes none."""

    @abstractmethod
    def changes(self, group: Group, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        """Return the merge patch that brings the group up to date; None when it is."""

    @abstractmethod
    def admits(self, group: Group | None) -> bool:
        """Return whether Pods may be made."""

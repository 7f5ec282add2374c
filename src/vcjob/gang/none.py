"""The back end `none`: no gang scheduler, Pods are made at once. Pure."""

from typing import Any

from vcjob.api.job import Job

from .base import Gang, Group, GroupWish

__all__ = ("NoGang",)


class NoGang(Gang):
    """Pods that name the gang scheduler, or none, go to the cluster's default scheduler instead."""

    uses_groups = False

    def scheduler_name(self, name: str) -> str:
        return "" if name == self._gang_scheduler_name else name

    def group_name(self, job: Job) -> str:
        # The annotation stays, so that a later switch to a gang scheduler finds the Pods of the group.
        return f"{job.name}-{job.uid}"

    def wanted_group(self, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        return None

    def changes(self, group: Group, job: Job, wish: GroupWish) -> dict[str, Any] | None:
        return None

    def admits(self, group: Group | None) -> bool:
        return True

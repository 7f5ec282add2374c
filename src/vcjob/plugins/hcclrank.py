"""hcclrank: a Pod carries its rank for Huawei's collective communication library. Pure."""

from functools import cached_property
from typing import Final

from .base import Flag, Plugin, PodDraft

__all__ = ("RANK_ANNOTATION", "HcclRank")

RANK_ANNOTATION: Final = "hccl/rankIndex"


class HcclRank(Plugin):
    """The annotation `hccl/rankIndex`: the RANK of a container, else the place among master and workers."""

    name = "hcclrank"
    marked = False
    flags = (
        Flag(name="master", kind=str, default="master", help="Task of the master."),
        Flag(name="worker", kind=str, default="worker", help="Task of the workers."),
    )

    def on_pod_create(self, pod: PodDraft) -> None:
        if pod.annotations.get(RANK_ANNOTATION):
            return
        rank = _rank_from_env(pod) or self._rank_from_task(pod)
        if rank:
            pod.annotations[RANK_ANNOTATION] = rank

    def _rank_from_task(self, pod: PodDraft) -> str:
        if pod.task.name == self.args["master"]:
            return str(pod.index)
        if pod.task.name == self.args["worker"]:
            return str(self._masters + pod.index)
        return ""

    @cached_property
    def _masters(self) -> int:
        master = self.job.task(self.args["master"])
        return master.replicas if master else 0


def _rank_from_env(pod: PodDraft) -> str:
    for container in pod.containers:
        # Of entries with one name a process sees the last.
        last = next((e for e in reversed(container.get("env") or ()) if e.get("name") == "RANK"), None)
        if last and last.get("value"):
            return str(last["value"])
    return ""

"""One walk over the Job's Pods: who is there, who is missing, who is too many. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vcjob.api.job import Job

from .counters import Counters, count_pods
from .pod import Pod

__all__ = ("Census", "Member", "after_kill", "take_census")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A Pod that should be there."""

    task: str
    index: int
    evicted_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The Job's Pods by what has to be done about them."""

    owned: tuple[Pod, ...]
    members: tuple[Pod, ...]  # owned, and part of the Job as its spec is now
    missing: Mapping[str, tuple[int, ...]]  # task -> indices without a Pod of that name
    surplus: tuple[Pod, ...]  # owned, but not, or no longer, part of the Job
    strangers: tuple[Pod, ...]  # hold a wanted name without being the Job's
    counters: Counters

    @property
    def member_counters(self) -> Counters:
        """Return the numbers of the Job's Pods without those that a scaling takes away."""
        return count_pods(self.members) if self.surplus else self.counters

    @property
    def terminating(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.owned if pod.deleted is not None)


def take_census(job: Job, pods: Mapping[str, Pod]) -> Census:
    """Sort the Pods that carry the Job's label."""
    uid, prefix = job.uid, f"{job.name}-"
    replicas = {task.name: task.replicas for task in job.spec.tasks}
    present: dict[str, set[int]] = {name: set() for name in replicas}
    owned: list[Pod] = []
    members: list[Pod] = []
    surplus: list[Pod] = []
    others: list[Pod] = []
    for pod in pods.values():
        wanted = 0 <= pod.index < replicas.get(pod.task, 0) and pod.name == f"{prefix}{pod.task}-{pod.index}"
        if pod.owner_uid == uid:
            owned.append(pod)
            (members if wanted else surplus).append(pod)
        elif not wanted:
            continue  # somebody else's Pod that only shares the label
        else:
            others.append(pod)
        if wanted:
            present[pod.task].add(pod.index)
    missing = {
        name: tuple(i for i in range(count) if i not in present[name])
        for name, count in replicas.items()
        if len(present[name]) < count
    }
    return Census(
        owned=tuple(owned),
        members=tuple(members),
        missing=missing,
        surplus=tuple(surplus),
        strangers=tuple(others),
        counters=count_pods(owned),
    )


def after_kill(census: Census, killed: Iterable[Pod]) -> Counters:
    """Return the counters as they will be once the deletions are through to the API server."""
    names = {pod.name for pod in killed}
    kept = count_pods(pod for pod in census.owned if pod.name not in names)
    return replace(kept, terminating=kept.terminating + len(names))

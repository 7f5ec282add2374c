"""Which rule answers on which route: the pure verdicts, with what they need from the cluster looked up for them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vcjob.admission.podgroups import belongs_to_job, podgroup_patch, podgroup_queue, validate_podgroup
from vcjob.admission.problem import Problem, denial
from vcjob.admission.queue_rules import QueuePolicy, queue_patch, validate_queue, validate_queue_removal
from vcjob.admission.queue_tree import QueueTree
from vcjob.admission.queues import check_group_queue, check_queue
from vcjob.api.names import DEFAULT_QUEUE

from .handlers import Decide
from .jobs import judge_change, judge_new, mutate_new, queue_of
from .namespaces import Namespaces
from .queues import Judge, Queues
from .review import Review, Verdict
from .routes import (
    MUTATE_JOBS,
    MUTATE_PODGROUPS,
    MUTATE_QUEUES,
    VALIDATE_JOBS,
    VALIDATE_PODGROUPS,
    VALIDATE_QUEUES,
    Route,
)

__all__ = ("Cluster", "make_rules")

LARGE: Final = 64 * 1024  # bytes of a review; what is smaller is decided upon in some milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the rules look things up."""

    queues: Queues
    namespaces: Namespaces


def make_rules(cluster: Cluster, *, scheduler: str, check_queues: bool, policy: QueuePolicy) -> Mapping[Route, Decide]:
    """Return the rule of every route. Jobs and PodGroups may name any Queue unless `check_queues`."""
    queues = cluster.queues

    async def ask(judge: Judge) -> tuple[Problem, ...]:
        problem = await queues.find_problem(judge) if check_queues else None
        return (problem,) if problem else ()

    async def beside(review: Review, decide: Callable[[], Verdict]) -> Verdict:
        """Decide on a Job with thousands of tasks in a thread, for other requests and probes not to wait for it."""
        return await asyncio.to_thread(decide) if review.size > LARGE else decide()

    async def mutate_job(review: Review) -> Verdict:
        return await beside(review, lambda: mutate_new(review.object or {}, scheduler=scheduler))

    async def validate_job(review: Review) -> Verdict:
        job = review.object or {}
        if (old := review.old) is not None:
            return await beside(review, lambda: judge_change(old, job))
        name = queue_of(job)

        def judge(tree: QueueTree) -> Problem | None:
            return check_queue(tree.queues.get(name), name, children=len(tree.children(name)))

        others = await ask(judge)
        return await beside(review, lambda: judge_new(job, others=others))

    async def mutate_group(review: Review) -> Verdict:
        group = review.object or {}
        if podgroup_queue(group) != DEFAULT_QUEUE:
            return Verdict()
        return Verdict(patch=podgroup_patch(group, namespace=await cluster.namespaces.read(review.namespace)))

    async def validate_group(review: Review) -> Verdict:
        group = review.object or {}
        name, of_job = podgroup_queue(group), belongs_to_job(group)

        def judge(tree: QueueTree) -> Problem | None:
            return check_group_queue(tree.queues.get(name), name, of_job=of_job)

        return Verdict(denial=denial((*validate_podgroup(group), *await ask(judge))))

    async def mutate_queue(review: Review) -> Verdict:
        return Verdict(patch=queue_patch(review.object or {}))

    async def judge_queue(review: Review) -> Verdict:
        tree = await queues.read()
        if review.object is None:
            return Verdict(denial=denial(validate_queue_removal(review.old or {}, tree=tree, policy=policy)))
        return Verdict(denial=denial(validate_queue(review.object, old=review.old, tree=tree, policy=policy)))

    return {
        MUTATE_JOBS: mutate_job,
        VALIDATE_JOBS: validate_job,
        MUTATE_PODGROUPS: mutate_group,
        VALIDATE_PODGROUPS: validate_group,
        MUTATE_QUEUES: mutate_queue,
        VALIDATE_QUEUES: judge_queue,
    }

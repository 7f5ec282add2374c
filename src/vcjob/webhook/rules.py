"""Which rule answers on which route: the pure verdicts, with what they need from the cluster looked up for them."""

from collections.abc import Mapping

from .handlers import Decide
from .jobs import judge_change, judge_new, mutate_new, queue_of
from .queues import Queues
from .review import Review, Verdict
from .routes import MUTATE_JOBS, VALIDATE_JOBS, Route

__all__ = ("make_rules",)


def make_rules(*, scheduler: str, queues: Queues | None) -> Mapping[Route, Decide]:
    """Return the rule of every route. Jobs may name any Queue when `queues` is None."""

    async def mutate_job(review: Review) -> Verdict:
        return mutate_new(review.object or {}, scheduler=scheduler)

    async def validate_job(review: Review) -> Verdict:
        job = review.object or {}
        if review.old is not None:
            return judge_change(review.old, job)
        problem = await queues.find_problem(queue_of(job)) if queues else None
        return judge_new(job, others=(problem,) if problem else ())

    return {MUTATE_JOBS: mutate_job, VALIDATE_JOBS: validate_job}

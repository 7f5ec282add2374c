"""Which question is asked where: the table of paths, webhook names, kinds and operations. Pure.

Paths and names are Volcano's, so that configurations written for its webhooks fit. There is none for Pods: a webhook
that is down would hold up every Pod of the cluster.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vcjob.api.names import BATCH_GROUP

from .review import Review

__all__ = ("ROUTES", "Route", "WebhookKind", "find_fault", "routes_of")


class WebhookKind(Enum):
    """Which of the two configurations a webhook belongs to."""

    MUTATING = "MutatingWebhookConfiguration"
    VALIDATING = "ValidatingWebhookConfiguration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One webhook."""

    path: str  # of the URL, and with that the id of kopf's handler
    name: str
    kind: WebhookKind
    group: str
    version: str
    plural: str
    operations: tuple[str, ...]


MUTATE_JOBS: Final = Route(
    path="/jobs/mutate",
    name="mutatejob.volcano.sh",
    kind=WebhookKind.MUTATING,
    group=BATCH_GROUP,
    version="v1alpha1",
    plural="jobs",
    operations=("CREATE",),
)
VALIDATE_JOBS: Final = Route(
    path="/jobs/validate",
    name="validatejob.volcano.sh",
    kind=WebhookKind.VALIDATING,
    group=BATCH_GROUP,
    version="v1alpha1",
    plural="jobs",
    operations=("CREATE", "UPDATE"),
)
ROUTES: Final = (MUTATE_JOBS, VALIDATE_JOBS)


def routes_of(plurals: tuple[str, ...]) -> tuple[Route, ...]:
    """Return the webhooks for these kinds."""
    return tuple(route for route in ROUTES if route.plural in plurals)


def find_fault(route: Route, review: Review) -> str:
    """Return why the review should not have been sent here; empty when it should."""
    asked = (review.group, review.version, review.plural, review.subresource)
    if asked != (route.group, route.version, route.plural, ""):
        return f"{route.path} is for {route.plural}.{route.group}/{route.version}, not for {review.resource}"
    if review.operation not in route.operations:
        return f"{route.path} is for {' and '.join(route.operations)}, not for {review.operation}"
    if review.object is None and review.operation != "DELETE":
        return "the review holds no object"
    if review.old is None and review.operation != "CREATE":
        return "the review holds no oldObject"
    return ""

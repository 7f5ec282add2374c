"""Which question is asked where: the table of paths, webhook names, kinds and operations. Pure.

Paths and names are Volcano's, so that configurations written for its webhooks fit. There is none for Pods: a webhook
that is down would hold up every Pod of the cluster.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vcjob.api.names import BATCH_GROUP, SCHEDULING_GROUP

from .review import Review

__all__ = (
    "MUTATE_JOBS",
    "MUTATE_PODGROUPS",
    "MUTATE_QUEUES",
    "ROUTES",
    "VALIDATE_JOBS",
    "VALIDATE_PODGROUPS",
    "VALIDATE_QUEUES",
    "Route",
    "WebhookKind",
    "find_fault",
    "routes_of",
)


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

    @property
    def resource(self) -> str:
        """Return `plural.group/version`."""
        return f"{self.plural}.{self.group}/{self.version}"


def _route(path: str, name: str, *operations: str, group: str = SCHEDULING_GROUP, version: str = "v1beta1") -> Route:
    _, plural, verb = path.split("/")
    return Route(
        path=path,
        name=name,
        kind=WebhookKind.MUTATING if verb == "mutate" else WebhookKind.VALIDATING,
        group=group,
        version=version,
        plural=plural,
        operations=operations,
    )


_JOBS: Final = {"group": BATCH_GROUP, "version": "v1alpha1"}

MUTATE_JOBS: Final = _route("/jobs/mutate", "mutatejob.volcano.sh", "CREATE", **_JOBS)
VALIDATE_JOBS: Final = _route("/jobs/validate", "validatejob.volcano.sh", "CREATE", "UPDATE", **_JOBS)
# A group is judged only when it is made: the scheduler writes its status through the object itself, all the time.
MUTATE_PODGROUPS: Final = _route("/podgroups/mutate", "mutatepodgroup.volcano.sh", "CREATE")
VALIDATE_PODGROUPS: Final = _route("/podgroups/validate", "validatepodgroup.volcano.sh", "CREATE")
MUTATE_QUEUES: Final = _route("/queues/mutate", "mutatequeue.volcano.sh", "CREATE")
VALIDATE_QUEUES: Final = _route("/queues/validate", "validatequeue.volcano.sh", "CREATE", "UPDATE", "DELETE")
ROUTES: Final = (
    MUTATE_JOBS,
    VALIDATE_JOBS,
    MUTATE_PODGROUPS,
    VALIDATE_PODGROUPS,
    MUTATE_QUEUES,
    VALIDATE_QUEUES,
)


def routes_of(plurals: tuple[str, ...]) -> tuple[Route, ...]:
    """Return the webhooks for these kinds."""
    return tuple(route for route in ROUTES if route.plural in plurals)


def find_fault(route: Route, review: Review) -> str:
    """Return why the review should not have been sent here; empty when it should."""
    asked = (review.group, review.version, review.plural, review.subresource)
    if asked != (route.group, route.version, route.plural, ""):
        return f"{route.path} is for {route.resource}, not for {review.resource}"
    if review.operation not in route.operations:
        return f"{route.path} is for {' and '.join(route.operations)}, not for {review.operation}"
    if review.object is None and review.operation != "DELETE":
        return "the review holds no object"
    if review.old is None and review.operation != "CREATE":
        return "the review holds no oldObject"
    return ""

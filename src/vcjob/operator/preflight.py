"""Before anything else: are the kinds there, and may we do what we must?

Both are asked again until the answer is yes; meanwhile /readyz and the log name what is missing.
"""

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from vcjob.api.names import BATCH_GROUP, BUS_GROUP, SCHEDULING_GROUP
from vcjob.kube.answers import read_typed
from vcjob.kube.client import ApiClient
from vcjob.kube.discovery import find_served
from vcjob.kube.errors import ApiError, NotFound

__all__ = (
    "Need",
    "Scope",
    "find_absent_namespaces",
    "find_missing_kinds",
    "find_missing_rights",
    "list_needs",
    "wait_for_kinds",
)

log = logging.getLogger(__name__)

_ASK_AGAIN_S: Final = 5.0
_ANSWER_S: Final = 10.0
_QUESTIONS: Final = 16  # that are asked side by side


class Scope(Enum):
    """Where a right is needed."""

    WATCHED = "in the namespaces that are watched"
    CLUSTER = "in the whole cluster"
    LEASE = "in the namespace of the Lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A right that the operator uses; deploy/rbac grants these and no others."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    subresource: str = ""
    scope: Scope = Scope.WATCHED

    @property
    def title(self) -> str:
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{name}.{self.group}" if self.group else name


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict


def list_needs(*, groups: bool, elects: bool) -> tuple[Need, ...]:
    """Return every right that is used; `groups` adds those for a gang scheduler's objects, `elects` the Lease."""
    needs = [
        Need(group=BATCH_GROUP, resource="jobs", verbs=("get", "list", "watch", "patch", "delete")),
        Need(group=BATCH_GROUP, resource="jobs", subresource="status", verbs=("update",)),
        Need(group=BATCH_GROUP, resource="jobs", subresource="finalizers", verbs=("update",)),
        Need(group=BUS_GROUP, resource="commands", verbs=("list", "watch", "delete")),
        Need(group="", resource="pods", verbs=("get", "list", "watch", "create", "patch", "delete")),
        Need(group="", resource="services", verbs=("get", "create", "delete")),
        Need(group="", resource="configmaps", verbs=("get", "create", "patch", "delete")),
        Need(group="", resource="secrets", verbs=("get", "create", "patch", "delete")),
        Need(group="", resource="persistentvolumeclaims", verbs=("get", "create")),
        Need(group="", resource="events", verbs=("create", "patch")),
        Need(group="networking.k8s.io", resource="networkpolicies", verbs=("get", "create", "delete")),
    ]
    if groups:
        every, seen = ("get", "list", "watch", "create", "patch", "delete"), ("list", "watch")
        needs += [
            Need(group=SCHEDULING_GROUP, resource="podgroups", verbs=every),
            Need(group=SCHEDULING_GROUP, resource="queues", verbs=seen, scope=Scope.CLUSTER),
            Need(group="scheduling.k8s.io", resource="priorityclasses", verbs=seen, scope=Scope.CLUSTER),
        ]
    if elects:
        held = ("get", "create", "update")
        needs.append(Need(group="coordination.k8s.io", resource="leases", verbs=held, scope=Scope.LEASE))
    return tuple(needs)


async def find_missing_rights(
    api: ApiClient, needs: tuple[Need, ...], *, namespaces: tuple[str, ...], lease_namespace: str = ""
) -> tuple[str, ...]:
    """Return what is not allowed, as `verb resource.group [in namespace]`. Raises ApiError."""

    slots = asyncio.Semaphore(_QUESTIONS)

    async def ask(need: Need, verb: str, namespace: str) -> str | None:
        attributes = {
            "group": need.group,
            "resource": need.resource,
            "subresource": need.subresource,
            "verb": verb,
            "namespace": namespace,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        async with slots:
            reviewed = await api.create(path, body)
        if read_typed(reviewed, _Review, path=path).status.allowed:
            return None
        return f"{verb} {need.title}" + (f" in namespace {namespace}" if namespace else "")

    places = {Scope.WATCHED: namespaces or ("",), Scope.CLUSTER: ("",), Scope.LEASE: (lease_namespace,)}
    questions = [
        ask(need, verb, namespace) for need in needs for verb in need.verbs for namespace in places[need.scope]
    ]
    answers = await asyncio.gather(*questions)
    return tuple(answer for answer in answers if answer is not None)


async def find_absent_namespaces(api: ApiClient, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """Return those that do not exist, as far as the server tells.

    Lists of what is in a namespace are empty when it is not there, and to read namespaces is no right of ours; but the
    server refuses an Event in one, even if it is only asked what it would do.
    """
    absent = []
    for namespace in namespaces:
        metadata = {"name": "vcjob-asks-for-the-namespace", "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": {"namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            await api.request("POST", path, body=body, params={"dryRun": "All"}, timeout_s=_ANSWER_S)
        except NotFound:
            absent.append(namespace)
        except ApiError as error:
            log.info("namespace cannot be asked for", extra={"namespace": namespace, "error": error.message})
    return tuple(absent)


async def find_missing_kinds(api: ApiClient, *, groups: bool) -> tuple[str, ...]:
    """Return the kinds (`plural.group`) that the API server does not serve. Raises ApiError."""
    wanted = {(BATCH_GROUP, "v1alpha1"): ["jobs"], (BUS_GROUP, "v1alpha1"): ["commands"]}
    if groups:
        wanted[(SCHEDULING_GROUP, "v1beta1")] = ["podgroups", "queues"]
    missing = []
    for (group, version), plurals in wanted.items():
        served = await find_served(api, group, version)
        missing += [f"{plural}.{group}" for plural in plurals if plural not in served]
    return tuple(missing)


async def wait_for_kinds(api: ApiClient, *, groups: bool, tell: "list[str]") -> None:
    """Return once every kind is served; until then `tell` holds one sentence that says what is awaited."""
    said = ""
    while True:
        try:
            missing = await find_missing_kinds(api, groups=groups)
            sentence = f"waiting for the CRDs of {', '.join(missing)} to be installed" if missing else ""
        except ApiError as error:
            sentence = f"waiting for the API server: {error.message}"
        tell[:] = [sentence] if sentence else []
        if not sentence:
            return
        if sentence != said:
            log.warning("not ready", extra={"because": sentence})
            said = sentence
        await asyncio.sleep(_ASK_AGAIN_S)

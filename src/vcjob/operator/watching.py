"""kopf at the rim: it watches the kinds that change seldom and hands what it sees to the engine.

Only `on.event` handlers, because they are the only ones with which kopf never writes to an object: no finalizer, no
annotation, no status. What the objects mean is decided elsewhere.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import kopf

from vcjob.api.names import BATCH_API_VERSION, BATCH_GROUP, BUS_GROUP, JOB_KIND, SCHEDULING_GROUP
from vcjob.controller.engine import CommandRequest, Engine
from vcjob.kube.client import ApiClient

__all__ = ("WatchedKind", "find_dead_watcher", "make_registry", "make_settings", "read_command")

WatchedKind = tuple[str, str, str]
"""Group, version and plural."""

JOBS: WatchedKind = (BATCH_GROUP, "v1alpha1", "jobs")
COMMANDS: WatchedKind = (BUS_GROUP, "v1alpha1", "commands")
QUEUES: WatchedKind = (SCHEDULING_GROUP, "v1beta1", "queues")
PRIORITY_CLASSES: WatchedKind = ("scheduling.k8s.io", "v1", "priorityclasses")

_SERVER_TIMEOUT_S = 50  # a watch is renewed this often, so that a silent one is noticed within a minute
_CLIENT_TIMEOUT_S = 60


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last state of objects: nothing here asks for it, and building it costs more than all the rest."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> Any:
        return None

    def store(self, **_: Any) -> None:
        return None


def make_settings() -> kopf.OperatorSettings:
    """Return kopf's settings for an operator that only listens."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # Events are ours, de-duplicated and limited
    settings.scanning.disabled = True  # the kinds are fixed; needs no rights on CRDs and namespaces
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.watching.server_timeout = _SERVER_TIMEOUT_S
    settings.watching.client_timeout = _CLIENT_TIMEOUT_S
    settings.watching.connect_timeout = 10.0
    # kopf's own guard against silence can end a watcher for good while its consumer is busy; ours is the timeout above.
    settings.watching.inactivity_timeout = 1e9
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 1.0
    return settings


def make_registry(engine: Engine, api: ApiClient, *, watch_queues: bool) -> kopf.OperatorRegistry:
    """Return the handlers."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        # kopf asks again after a 401, so the credentials are renewed rather than given a second time.
        await api.renew_credentials()
        return kopf.AiohttpSession(server=api.credentials.server, aiohttp_session=api.lend_session())

    def on_event(kind: WatchedKind, take: Callable[[str, dict[str, Any]], None]) -> None:
        async def handle(event: Any, **_: Any) -> None:
            take(event["type"] or "", event["object"])

        kopf.on.event(*kind, registry=registry, id=kind[2])(handle)

    def take_job(event: str, raw: dict[str, Any]) -> None:
        raw = {**raw, "metadata": dict(raw["metadata"])}
        if event == "DELETED":
            engine.take_deleted_job(raw)
        else:
            engine.take_job(raw)

    def take_command(event: str, raw: dict[str, Any]) -> None:
        request = read_command(raw)
        if event != "DELETED" and request is not None:
            engine.take_command(request)

    def take_queue(event: str, raw: dict[str, Any]) -> None:
        engine.take_queue(raw["metadata"]["name"], None if event == "DELETED" else raw)

    def take_priority(event: str, raw: dict[str, Any]) -> None:
        engine.take_priority(raw["metadata"]["name"], None if event == "DELETED" else int(raw.get("value") or 0))

    on_event(JOBS, take_job)
    on_event(COMMANDS, take_command)
    if watch_queues:
        on_event(QUEUES, take_queue)
        on_event(PRIORITY_CLASSES, take_priority)
    return registry


def read_command(raw: dict[str, Any]) -> CommandRequest | None:
    """Return what a Command asks for; None when it is not about a Job or is being deleted already."""
    meta, target = raw.get("metadata") or {}, raw.get("target") or {}
    if target.get("apiVersion") != BATCH_API_VERSION or target.get("kind") != JOB_KIND or meta.get("deletionTimestamp"):
        return None
    return CommandRequest(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        action=str(raw.get("action") or ""),
        target=str(target.get("name") or ""),
        target_uid=str(target.get("uid") or ""),
        reason=str(raw.get("reason") or raw.get("message") or ""),
    )


def find_dead_watcher() -> str:
    """Return a sentence when a watcher of kopf is no more; its task can end without a word.

    Looks at the tasks of the running loop; to be called once kopf has been up for a moment.
    """
    names = {task.get_name() for task in asyncio.all_tasks()}
    if any(name.startswith("watcher for jobs") for name in names):
        return ""
    return "kopf's watcher of jobs has ended"

"""kopf at the rim: it watches the kinds that change seldom and hands what it sees to the engine.

Only `on.event` handlers, because they are the only ones with which kopf never writes to an object: no finalizer, no
annotation, no status. What the objects mean is decided elsewhere.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import kopf

from vcjob.api.names import BATCH_API_VERSION, BATCH_GROUP, BUS_GROUP, JOB_KIND, SCHEDULING_GROUP
from vcjob.controller.engine import Engine
from vcjob.controller.requests import CommandRequest
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError
from vcjob.kube.forms import Identity

__all__ = (
    "WatchedKind",
    "Watchers",
    "make_registry",
    "make_settings",
    "read_command",
)

log = logging.getLogger(__name__)

WatchedKind = tuple[str, str, str]
"""Group, version and plural."""

JOBS: WatchedKind = (BATCH_GROUP, "v1alpha1", "jobs")
COMMANDS: WatchedKind = (BUS_GROUP, "v1alpha1", "commands")
QUEUES: WatchedKind = (SCHEDULING_GROUP, "v1beta1", "queues")
PRIORITY_CLASSES: WatchedKind = ("scheduling.k8s.io", "v1", "priorityclasses")

_SERVER_TIMEOUT_S = 50  # a watch is renewed this often, so that a silent one is noticed within a minute
_CLIENT_TIMEOUT_S = 60
_RETRY_CAP_S = 10.0
_DEAF_S = 150.0  # a watch is begun anew each minute; more than two in vain are no accident
_LOGIN_PAUSE_S = 5.0  # between two logins


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last state of objects: nothing here asks for it, and building it costs more than all the rest."""

    def build(self, **_: Any) -> Any:
        return None

    def fetch(self, **_: Any) -> Any:
        return None

    def store(self, **_: Any) -> None:
        return None


class _Patience:
    """Delays between kopf's tries, in seconds, without an end: what gives up trying ends its watcher for good."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 2.0, 4.0), repeat(_RETRY_CAP_S))


def make_settings() -> kopf.OperatorSettings:
    """Return kopf's settings for an operator that only listens."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # Events are ours, de-duplicated and limited
    settings.scanning.disabled = True  # the kinds are fixed; needs no rights on CRDs and namespaces
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.networking.error_backoffs = _Patience()
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

    def is_news(path: str, told: Identity) -> bool:
        # The answer to each of our own writes is in the store; its echo would cost kopf a millisecond.
        return not (path.endswith("/jobs") and engine.view.knows(told))

    last_login = -_LOGIN_PAUSE_S

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        # kopf asks again after a 401, at once and for ever, and its watchers end when there is no answer.
        nonlocal last_login
        await asyncio.sleep(last_login + _LOGIN_PAUSE_S - steady())
        last_login = steady()
        try:
            await api.renew_credentials()
        except ApiError as error:
            log.warning("credentials cannot be renewed", extra={"error": error.message})
        session = api.lend_session(sieve=is_news)
        return kopf.AiohttpSession(server=api.credentials.server, aiohttp_session=session)

    def on_event(kind: WatchedKind, take: Callable[[str, dict[str, Any]], None]) -> None:
        async def handle(event: Any, **_: Any) -> None:
            take(event["type"] or "", event["object"])

        kopf.on.event(*kind, registry=registry, id=kind[2])(handle)

    def take_job(event: str, raw: dict[str, Any]) -> None:
        raw = {**raw, "metadata": dict(raw["metadata"])}
        if event == "DELETED":
            engine.view.take_deleted_job(raw)
        else:
            engine.view.take_job(raw)

    def take_command(event: str, raw: dict[str, Any]) -> None:
        request = read_command(raw)
        if request is None:
            return
        if event == "DELETED":
            engine.lose_command(request)
        elif not raw["metadata"].get("deletionTimestamp"):
            engine.take_command(request)

    on_event(JOBS, take_job)
    on_event(COMMANDS, take_command)
    if watch_queues:
        on_event(QUEUES, engine.view.queues.take)
        on_event(PRIORITY_CLASSES, engine.view.priority_classes.take)
    return registry


def read_command(raw: dict[str, Any]) -> CommandRequest | None:
    """Return what a Command asks for; None when it is not about a Job."""
    meta, target = raw.get("metadata") or {}, raw.get("target") or {}
    if target.get("apiVersion") != BATCH_API_VERSION or target.get("kind") != JOB_KIND:
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


class Watchers:
    """The tasks in which kopf watches; one of them can end without a word."""

    def __init__(self, *, queues: bool) -> None:
        """`queues` adds the kinds that a gang scheduler's Jobs refer to."""
        self._awaited = {plural for _, _, plural in (JOBS, COMMANDS, *((QUEUES, PRIORITY_CLASSES) if queues else ()))}
        self._seen: set[str] = set()

    def find_missing(self) -> str:
        """Return a sentence when one has not begun yet."""
        missing = self._awaited - self._seen - self._running()
        return f"not watched yet: {', '.join(sorted(missing))}" if missing else ""

    def find_dead(self) -> str:
        """Return a sentence when one has ended."""
        running = self._running()
        dead = self._seen - running
        self._seen |= running
        return f"the watch of {', '.join(sorted(dead))} has ended" if dead else ""

    def find_deaf(self, heard: Mapping[str, float]) -> str:
        """Return a sentence when one has not got a word from the server for long; `heard` is by path (steady)."""
        limit = steady() - _DEAF_S
        deaf = sorted(path for path, at in heard.items() if at < limit and path.rpartition("/")[2] in self._awaited)
        return f"nothing was heard of {', '.join(deaf)} for {_DEAF_S:.0f} s" if deaf else ""

    def _running(self) -> set[str]:
        names = [task.get_name() for task in asyncio.all_tasks()]
        return {plural for plural in self._awaited if any(n.startswith(f"watcher for {plural}.") for n in names)}

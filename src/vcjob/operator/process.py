"""The operator process: what is started in which order, and how it ends.

Servers first (so that probes are answered at once), then rights and kinds, then the watches, then the lease, and only
the leader works. On SIGTERM the engine stops first, then the lease is given back, then kopf is told to end: kopf
cancels every task that is younger than itself.
"""

import asyncio
import gc
import logging
import signal
import socket
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final

import kopf
import uvloop

from vcjob import __version__
from vcjob.controller.engine import Engine
from vcjob.controller.view import View
from vcjob.daemon.health import Check, HealthServer, Pulse
from vcjob.daemon.logs import set_up_logging
from vcjob.gang.backends import BACKENDS
from vcjob.gang.base import Gang
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.credentials import Credentials, load_credentials
from vcjob.kube.errors import ApiError, WentBack
from vcjob.kube.events import EventRecorder
from vcjob.kube.lease import LeaseElector

from .metrics import Metrics
from .observing import Observing, read_gauges
from .preflight import find_absent_namespaces, find_missing_rights, list_needs, wait_for_kinds
from .settings import OperatorSettings
from .tracing import load_tracing
from .watchdog import WatcherLost, watch_over
from .watching import Watchers, make_registry, make_settings

__all__ = ("run_operator",)

log = logging.getLogger(__name__)

_STOP_S: Final = 8.0  # from SIGTERM to the end at most; kopf takes one
_LAST_WORDS_S: Final = 3.0  # for Events that wait
_RIGHTS_AGAIN_S: Final = 5.0
_DOUBT_S: Final = 30.0  # at least between two questions about rights while all are there
_DEAF_S: Final = 330.0  # the informers reconnect by themselves much sooner
_STUCK_S: Final = 300.0
_WELL_S: Final = 60.0


def run_operator(settings: OperatorSettings) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Raises CredentialsError for a bad kubeconfig."""
    set_up_logging(level=settings.log_level, form=settings.log_format)
    credentials = load_credentials(kubeconfig=settings.kubeconfig, context=settings.context)
    # Nothing of ours makes cycles, kopf's events do; so collect seldom, and never walk what was there at the start.
    gc.set_threshold(50_000, 20, 100)
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Operator(settings, credentials).run())


class EndedByItself(Exception):
    """What should go on for ever has ended."""


class Operator:
    """One operator process."""

    def __init__(self, settings: OperatorSettings, credentials: Credentials) -> None:
        self._settings = settings
        self._credentials = credentials
        self._metrics = Metrics()
        self._tracing = load_tracing(version=__version__)
        self._stop = asyncio.Event()
        self._kopf_started = asyncio.Event()
        self._awaited: list[str] = ["starting"]  # sentences: what the start waits for
        self._missing_rights: tuple[str, ...] = ()
        self._doubt = asyncio.Event()  # something was forbidden: perhaps a right has been taken away
        self._pulse = Pulse()
        self._identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"

    async def run(self) -> int:
        """Run until told to stop; return the exit code."""
        asyncio.get_running_loop().set_exception_handler(_hear_loop)
        self._catch_signals()
        agent = f"vcjob/{__version__}"
        async with ApiClient(
            self._credentials, user_agent=agent, observer=self._observe_request, on_forbidden=self._doubt.set
        ) as api:
            main = asyncio.create_task(self._run(api), name="operator")
            stop = asyncio.create_task(self._stop.wait(), name="stop")
            await asyncio.wait((main, stop), return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            main.cancel()
            try:
                async with asyncio.timeout(_STOP_S):
                    await main
            except (asyncio.CancelledError, TimeoutError):
                pass
            except ExceptionGroup as failures:
                _tell(failures)
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.stop, within_s=1.0)
        log.info("stopped")
        return 0 if self._stop.is_set() else 1

    def _observe_request(self, verb: str, template: str, code: int, seconds: float) -> None:
        self._metrics.observe_request(verb, template, code, seconds)
        if self._tracing is not None:
            self._tracing.observe_request(verb, template, code, seconds)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    async def _run(self, api: ApiClient) -> None:
        settings = self._settings
        gang = BACKENDS[self._settings.gang_scheduler](gang_scheduler_name=self._settings.scheduler_name)
        elector = self._make_elector(api)
        recorder = EventRecorder(
            api,
            instance=self._identity,
            is_busy=lambda: engine.limiter.busy,
            may_write=lambda: elector is None or elector.is_leader,
        )
        observing = Observing(metrics=self._metrics, recorder=recorder, tracing=self._tracing)
        engine = Engine(
            api,
            gang=gang,
            observer=observing,
            namespaces=settings.namespaces,
            assert_leading=elector.assert_leading if elector else _always,
        )
        self._metrics.add_gauges(lambda: read_gauges(engine, elector, recorder))
        watchers = Watchers(queues=gang.uses_groups)
        server = HealthServer(
            live=self._live_checks(engine, watchers),
            ready=self._ready_checks(engine, api, watchers),
            render_metrics=self._metrics.render,
        )
        await server.start(health=settings.health, metrics=settings.metrics)
        stop_kopf = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pulse.feel(), name="pulse")
                group.create_task(self._ask_for_rights(api, engine, gang), name="rights")
                group.create_task(recorder.run(), name="events")
                await wait_for_kinds(api, groups=gang.uses_groups, tell=self._awaited)
                group.create_task(engine.view.watch(), name="engine watches")
                kopf_task = group.create_task(self._run_kopf(engine, api, gang, stop_kopf), name="kopf")
                await self._kopf_started.wait()
                if settings.namespaces:
                    group.create_task(self._look_for_namespaces(api, engine.view), name="namespaces")
                group.create_task(watch_over(lambda: _find_lost(engine, api, watchers)), name="watchdog")
                work = group.create_task(self._work(engine, elector, recorder), name="work")
                try:
                    await asyncio.wait((work, kopf_task), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    work.cancel()
                    await asyncio.wait((work,), timeout=_STOP_S * 0.75)
                    await recorder.stop(deadline_s=_LAST_WORDS_S)
                    stop_kopf.set()
                    await asyncio.wait((kopf_task,), timeout=_STOP_S / 4)
                raise EndedByItself("kopf or the engine ended by itself")
        finally:
            await server.stop()

    @property
    def _lease_namespace(self) -> str:
        return self._settings.leader_elect_namespace or self._credentials.namespace

    def _make_elector(self, api: ApiClient) -> LeaseElector | None:
        if not self._settings.leader_elect:
            return None
        return LeaseElector(
            api, namespace=self._lease_namespace, name="vcjob-controller-manager", identity=self._identity
        )

    async def _work(self, engine: Engine, elector: LeaseElector | None, recorder: EventRecorder) -> None:
        async def start() -> None:
            self._metrics.leading.labels("vcjob-controller-manager").set(1)
            log.info(
                "working",
                extra={
                    "version": __version__,
                    "server": self._credentials.server,
                    "gang_scheduler": self._settings.gang_scheduler,
                    "namespaces": ",".join(self._settings.namespaces) or "all",
                },
            )
            await engine.work()

        async def stop() -> None:
            self._metrics.leading.labels("vcjob-controller-manager").set(0)
            if self._stop.is_set():  # what is still to be told is told while this process may write
                await recorder.stop(deadline_s=_LAST_WORDS_S)

        if elector is None:
            await start()
        else:
            await elector.run(start, stop)

    async def _run_kopf(self, engine: Engine, api: ApiClient, gang: Gang, stop: asyncio.Event) -> None:
        others = asyncio.all_tasks()
        tasks = await kopf.spawn_tasks(
            registry=make_registry(engine, api, watch_queues=gang.uses_groups),
            settings=make_settings(),
            standalone=True,
            clusterwide=not self._settings.namespaces,
            namespaces=self._settings.namespaces,
            ready_flag=self._kopf_started,
            stop_flag=stop,
        )
        # kopf has just put its own handlers there, and would end before the engine, or in the midst of its start.
        self._catch_signals()
        await kopf.run_tasks(tasks, ignored=others)

    # Health

    async def _ask_for_rights(self, api: ApiClient, engine: Engine, gang: Gang) -> None:
        """Find out which rights are missing; ask again as long as one is, and when something was forbidden."""
        needs = list_needs(groups=gang.uses_groups, elects=self._settings.leader_elect)
        namespaces, lease = self._settings.namespaces, self._lease_namespace
        while True:
            self._doubt.clear()
            try:
                missing = await find_missing_rights(api, needs, namespaces=namespaces, lease_namespace=lease)
            except ApiError as error:
                log.warning("rights cannot be asked for", extra={"error": error.message})
                await asyncio.sleep(_RIGHTS_AGAIN_S)
                continue
            if missing and missing != self._missing_rights:
                log.error("rights are missing", extra={"verbs": ", ".join(missing)})
            regained, self._missing_rights = self._missing_rights and not missing, missing
            if regained:
                log.info("all rights are there")
                engine.look_again()
            await asyncio.sleep(_RIGHTS_AGAIN_S if missing else _DOUBT_S)
            if not missing:
                await self._doubt.wait()

    async def _look_for_namespaces(self, api: ApiClient, view: View) -> None:
        """Tell which namespaces that are to be watched do not exist; to the watches they are only empty."""
        await view.pods.synced.wait()
        inhabited = {namespace for namespace, _ in (*view.pods.store.items, *view.jobs.items)}
        empty = tuple(name for name in self._settings.namespaces if name not in inhabited)
        if absent := await find_absent_namespaces(api, empty):
            log.warning("namespaces do not exist, or not yet", extra={"namespaces": ", ".join(absent)})

    def _live_checks(self, engine: Engine, watchers: Watchers) -> Iterable[Check]:
        def watches() -> str:
            if not self._kopf_started.is_set():
                return ""
            for informer in (engine.view.pods, engine.view.groups):
                if (
                    informer is not None
                    and informer.synced.is_set()
                    and (age := steady() - informer.last_heard) > _DEAF_S
                ):
                    return f"nothing was heard of {informer.path} for {age:.0f} s"
            return ""

        def passes() -> str:
            if engine.oldest_pass and (age := steady() - min(engine.oldest_pass.values())) > _STUCK_S:
                return f"a pass has been going on for {age:.0f} s"
            return ""

        return (
            Check(name="loop", find_fault=self._pulse.find_fault),
            Check(name="watches", find_fault=watches),
            Check(name="kopf", find_fault=watchers.find_dead),
            Check(name="passes", find_fault=passes),
        )

    def _ready_checks(self, engine: Engine, api: ApiClient, watchers: Watchers) -> Iterable[Check]:
        def synced() -> str:
            informers = [i for i in (engine.view.pods, engine.view.groups) if i is not None]
            late = [i.path for i in informers if not i.synced.is_set()]
            return f"not listed yet: {', '.join(late)}" if late else ""

        def server() -> str:
            faults = (
                api.refused,
                engine.view.fault,
                *(i.fault for i in (engine.view.pods, engine.view.groups) if i is not None),
                *(f"{path}: {failure}" for path, failure in api.lent_failing.items()),
            )
            return "; ".join(dict.fromkeys(filter(None, faults)))

        return (
            Check(name="kinds", find_fault=lambda: "; ".join(self._awaited)),
            Check(
                name="rights",
                find_fault=lambda: f"missing: {', '.join(self._missing_rights)}" if self._missing_rights else "",
            ),
            Check(name="started", find_fault=watchers.find_missing),
            Check(name="synced", find_fault=synced),
            Check(name="server", find_fault=server),
        )


def _find_lost(engine: Engine, api: ApiClient, watchers: Watchers) -> str:
    """Return a sentence when kopf's watches are lost although the server is there."""
    if dead := watchers.find_dead():
        return dead
    if steady() - engine.view.pods.last_heard > _WELL_S:
        return ""
    return watchers.find_deaf(api.lent_heard)


def _tell(failures: ExceptionGroup) -> None:
    """Log why the process ends; what came from outside, or what kopf gave up for, needs no trace."""
    causes = list(_leaves(failures))
    ours = [cause for cause in causes if not isinstance(cause, WatcherLost | EndedByItself | WentBack)]
    if any(not type(cause).__module__.startswith("kopf.") for cause in ours):
        log.error("failed; to be started anew", exc_info=failures)
    else:
        log.error("failed; to be started anew", extra={"error": "; ".join(dict.fromkeys(map(str, causes)))})


def _leaves(failure: Exception) -> Iterator[Exception]:
    if isinstance(failure, ExceptionGroup):
        for inner in failure.exceptions:
            yield from _leaves(inner)
    else:
        yield failure


def _hear_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no task was there to catch.

    A connection that breaks while nobody waits on it is no error of ours; whoever uses it next is told. A generator
    that does not like to be closed, as kopf's watches do not, is spoken of when the loop ends, and nothing follows.
    """
    transport, error = context.get("transport"), context.get("exception")
    broken = transport is not None and (isinstance(error, OSError) or transport.is_closing())
    level = logging.DEBUG if broken or "asyncgen" in context else logging.ERROR
    log.log(level, context.get("message", "event loop error"), exc_info=error)


def _always() -> None:
    """Without an election every process may write."""

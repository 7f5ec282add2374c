"""The webhook process: what is started in which order, and how it ends.

Probes first, then the kinds and the certificate, then kopf with the server. It answers reviews and watches nothing.
On SIGTERM it says that it is not ready and goes on answering for a moment, until nobody sends reviews here any more.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import Final

import kopf
import uvloop

from vcjob import __version__
from vcjob.daemon.addresses import BindAddress
from vcjob.daemon.health import CannotListen, Check, HealthServer, Pulse
from vcjob.daemon.logs import set_up_logging
from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import Credentials, load_credentials
from vcjob.kube.discovery import find_served
from vcjob.kube.errors import ApiError

from .certificates import LIFETIMES, advance, service_names
from .folder import follow_folder
from .handlers import make_kopf_settings, make_registry
from .keeper import CertificateKeeper, KeeperSettings
from .metrics import WebhookMetrics
from .namespaces import Namespaces
from .queues import Queues
from .registration import registered
from .routes import Route, routes_of
from .rules import Cluster, make_rules
from .server import ReviewServer
from .settings import CertificateFolder, LocalCertificate, ManagedCertificate, WebhookSettings
from .tls import ServingCertificate

__all__ = ("run_webhook",)

log = logging.getLogger(__name__)

_STOP_S: Final = 4.0  # from the end of the delay to the end of the process
_ASK_AGAIN_S: Final = 3.0
_POLL_S: Final = 0.1
_LOOPBACK: Final = "127.0.0.1"


def run_webhook(settings: WebhookSettings) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Raises CredentialsError for a useless kubeconfig."""
    set_up_logging(level=settings.log_level, form=settings.log_format)
    credentials = load_credentials(kubeconfig=settings.kubeconfig, context=settings.context)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Webhook(settings, credentials).run())


class Webhook:
    """One webhook process."""

    def __init__(self, settings: WebhookSettings, credentials: Credentials) -> None:
        self._settings = settings
        self._credentials = credentials
        self._metrics = WebhookMetrics()
        self._serving = ServingCertificate()
        self._routes = routes_of(settings.kinds)
        self._stop = asyncio.Event()
        self._kopf_started = asyncio.Event()
        self._server = ReviewServer(
            settings.webhook, routes=self._routes, context=self._serving.context, metrics=self._metrics
        )
        self._awaited: list[str] = ["starting"]  # sentences: what the start waits for
        self._certificate_fault: list[str] = []
        self._pulse = Pulse()

    async def run(self) -> int:
        """Run until told to stop; return the exit code."""
        self._catch_signals()
        self._metrics.show_certificate_expiry(lambda: ends.timestamp() if (ends := self._serving.ends_at) else 0.0)
        agent = f"vcjob-webhook/{__version__}"
        async with ApiClient(self._credentials, user_agent=agent, observer=self._metrics.observe_request) as api:
            probes = HealthServer(
                live=self._live_checks(), ready=self._ready_checks(), render_metrics=self._metrics.render
            )
            await probes.start(health=self._settings.health, metrics=self._settings.metrics)
            _probe(self._settings.webhook)
            main = asyncio.create_task(self._serve(api), name="webhook")
            stop = asyncio.create_task(self._stop.wait(), name="stop")
            try:
                await asyncio.wait((main, stop), return_when=asyncio.FIRST_COMPLETED)
                if not main.done():
                    log.info("stopping", extra={"delay_s": self._settings.shutdown_delay_s})
                    await asyncio.wait((main,), timeout=self._settings.shutdown_delay_s)
            finally:
                stop.cancel()
                main.cancel()
                await asyncio.wait((main,), timeout=_STOP_S)
                await probes.stop()
        if main.done() and not main.cancelled() and (error := main.exception()):
            log.error("the webhook ended by itself", exc_info=error)
            return 1
        log.info("stopped")
        return 0

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    async def _serve(self, api: ApiClient) -> None:
        settings = self._settings
        async with asyncio.TaskGroup() as group:
            helpers = [group.create_task(self._pulse.feel(), name="pulse")]
            await self._wait_for_kinds(api)
            authority = b""
            match settings.certificates:
                case CertificateFolder(path=path):
                    following = follow_folder(path, serving=self._serving, tell=self._certificate_fault)
                    helpers.append(group.create_task(following, name="certificate"))
                case ManagedCertificate() as managed:
                    keeping = self._make_keeper(api, managed).run(tell=self._certificate_fault)
                    helpers.append(group.create_task(keeping, name="certificate"))
                case LocalCertificate():
                    authority = self._make_local_certificate()
            await self._wait_for_certificate()
            stop_kopf = asyncio.Event()
            # kopf cancels every task that is younger than itself when it ends, so it comes last.
            kopf_task = group.create_task(self._run_kopf(api, stop_kopf), name="kopf")
            try:
                await self._kopf_started.wait()
                self._catch_signals()  # kopf has put its own handlers there, and would end at once
                await self._server.listening.wait()
                self._awaited.clear()
                log.info("answering reviews", extra={"webhooks": ", ".join(route.name for route in self._routes)})
                async with self._registered(api, authority):
                    await asyncio.wait((kopf_task,))
                raise RuntimeError("kopf ended by itself")
            finally:
                stop_kopf.set()
                await asyncio.wait((kopf_task,), timeout=_STOP_S / 2)
                for helper in helpers:
                    helper.cancel()

    async def _run_kopf(self, api: ApiClient, stop: asyncio.Event) -> None:
        settings = self._settings
        rules = make_rules(
            Cluster(queues=Queues(api, on_failure=self._metrics.queue_lookup_failures.inc), namespaces=Namespaces(api)),
            scheduler=settings.scheduler_name,
            check_queues=settings.check_queues,
            policy=settings.queue_policy,
        )
        await kopf.operator(
            registry=make_registry({route: rules[route] for route in self._routes}, api=api),
            settings=make_kopf_settings(self._server),
            standalone=True,
            clusterwide=True,
            ready_flag=self._kopf_started,
            stop_flag=stop,
        )

    # Certificates

    def _make_keeper(self, api: ApiClient, managed: ManagedCertificate) -> CertificateKeeper:
        settings = KeeperSettings(
            names=(*service_names(managed.service, namespace=managed.namespace), *managed.extra_names),
            namespace=managed.namespace,
            secret=managed.secret,
            configuration=managed.configuration,
            lifetimes=managed.lifetimes,
        )
        return CertificateKeeper(api, settings, serving=self._serving, now=api.clock.now)

    def _make_local_certificate(self) -> bytes:
        """Serve a new certificate for this machine, and return the authority that signed it."""
        names = (_LOOPBACK, "localhost")
        material = advance(None, names=names, now=datetime.now(UTC), lifetimes=LIFETIMES, published=False)
        self._serving.load(material.certificate, material.key)
        return material.bundle[0]

    async def _wait_for_certificate(self) -> None:
        while self._serving.ends_at is None:
            self._awaited[:] = ["; ".join(self._certificate_fault) or "waiting for a certificate"]
            await asyncio.sleep(_POLL_S)

    def _registered(self, api: ApiClient, authority: bytes) -> AbstractAsyncContextManager[None]:
        certificates = self._settings.certificates
        if not isinstance(certificates, LocalCertificate):
            return nullcontext()
        url = f"https://{_LOOPBACK}:{self._settings.webhook.port}"
        return registered(api, name=certificates.configuration, routes=self._routes, url=url, authority=authority)

    async def _wait_for_kinds(self, api: ApiClient) -> None:
        """Return once every kind is served: kopf looks for them once, when it starts."""
        said = ""
        while sentence := await find_missing_kinds(api, routes=self._routes):
            self._awaited[:] = [sentence]
            if sentence != said:
                log.warning("not ready", extra={"because": sentence})
                said = sentence
            await asyncio.sleep(_ASK_AGAIN_S)

    # Health

    def _live_checks(self) -> Iterable[Check]:
        return (Check(name="loop", find_fault=self._pulse.find_fault),)

    def _ready_checks(self) -> Iterable[Check]:
        return (
            Check(name="started", find_fault=lambda: "; ".join(self._awaited)),
            Check(name="listening", find_fault=lambda: "" if self._server.listening.is_set() else "not listening"),
            Check(name="certificate", find_fault=lambda: self._serving.find_fault(now=datetime.now(UTC))),
            Check(name="staying", find_fault=lambda: "stopping" if self._stop.is_set() else ""),
        )


async def find_missing_kinds(api: ApiClient, *, routes: tuple[Route, ...]) -> str:
    """Return a sentence that says what the API server does not serve yet; empty when it serves every kind."""
    missing = []
    for group, version in dict.fromkeys((route.group, route.version) for route in routes):
        try:
            served = await find_served(api, group, version)
        except ApiError as error:
            return f"waiting for the API server: {error.message}"
        plurals = {route.plural for route in routes if (route.group, route.version) == (group, version)}
        missing += [f"{plural}.{group}" for plural in sorted(plurals - served)]
    return f"waiting for the CRDs of {', '.join(missing)} to be installed" if missing else ""


def _probe(address: BindAddress) -> None:
    """Raise CannotListen when it is taken; kopf would tell of it late and at length."""
    try:
        socket.create_server((address.host, address.port)).close()
    except OSError as error:
        raise CannotListen(address, error) from error

"""kopf's admission handlers: one for each route, found by the path of the URL.

A handler decides on the review that the server has put beside kopf's request (see `thin_request`), leaves the verdict
there and tells kopf the outcome. A fault of ours is no denial: it is handed to the server, which answers with an error.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import kopf

from vcjob.kube.client import ApiClient

from .review import Review, Verdict
from .routes import Route, WebhookKind

__all__ = ("Decide", "Exchange", "current_exchange", "make_kopf_settings", "make_registry")

Decide = Callable[[Review], Awaitable[Verdict]]
"""The rule behind a route. May look things up; never writes."""

_DENIED: Final = 422
_FAULT: Final = 500


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One review on its way through kopf."""

    review: Review
    verdict: Verdict | None = None
    fault: Exception | None = None


current_exchange: Final[ContextVar[Exchange]] = ContextVar("current_exchange")


def make_registry(rules: Mapping[Route, Decide], *, api: ApiClient) -> kopf.OperatorRegistry:
    """Return kopf's registry with a handler for each rule, and nothing that watches or writes."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        await api.renew_credentials()
        return kopf.AiohttpSession(server=api.credentials.server, aiohttp_session=api.lend_session())

    for route, decide in rules.items():
        on = kopf.on.mutate if route.kind is WebhookKind.MUTATING else kopf.on.validate
        handler = _make_handler(decide)
        on(route.group, route.version, route.plural, registry=registry, id=route.path.lstrip("/"))(handler)
    return registry


def make_kopf_settings(server: kopf.WebhookServerProtocol) -> kopf.OperatorSettings:
    """Return kopf's settings for a process that only answers reviews."""
    settings = kopf.OperatorSettings()
    settings.admission.server = server
    settings.admission.managed = None  # the configurations are static: kopf's own would go when one replica goes
    settings.posting.enabled = False
    settings.scanning.disabled = True
    # kopf reports every denial as a failed handler; what was denied is logged by the server.
    logging.getLogger("kopf.objects").setLevel(logging.CRITICAL)
    return settings


def _make_handler(decide: Decide) -> Callable[..., Awaitable[None]]:
    async def handle(warnings: list[str], **_: Any) -> None:
        exchange = current_exchange.get()
        try:
            verdict = await decide(exchange.review)
        except Exception as error:
            exchange.fault = error
            raise kopf.AdmissionError("internal error", code=_FAULT) from error
        exchange.verdict = verdict
        warnings.extend(verdict.warnings)
        if verdict.denial:
            raise kopf.AdmissionError(verdict.denial, code=_DENIED)

    return handle

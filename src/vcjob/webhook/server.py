"""The HTTPS server of the reviews; kopf runs it as its admission server (`settings.admission.server`).

kopf's own server takes bodies of 1 MiB at most, which two versions of a big Job exceed, and stops listening to change
its certificate. An HTTP error, here, says that the question could not be answered, and leaves the decision to the
webhook's failurePolicy; a denial is an answer.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Final, cast

import kopf
from aiohttp import web

from vcjob.admission.raw import mapping
from vcjob.daemon.addresses import BindAddress
from vcjob.kube.clock import steady

from .handlers import Exchange, current_exchange
from .metrics import Outcome, WebhookMetrics
from .review import Review, ReviewError, Verdict, encode_answer, read_review, thin_request
from .routes import Route, find_fault

__all__ = ("BODY_MAX", "ReviewServer")

log = logging.getLogger(__name__)

# The API server takes requests of 3 MiB, etcd objects of 1.5 MiB: a new object, an old one, and what is around them.
BODY_MAX: Final = 5 * 1024 * 1024  # bytes
_BODY_TIMEOUT_S: Final = 10.0  # the API server itself waits no longer
_DRAIN_S: Final = 2.0  # for the requests that are being answered at the end


class ReviewServer:
    """Answers reviews over HTTPS. Called by kopf, with the function that runs the handlers."""

    def __init__(
        self, address: BindAddress, *, routes: Iterable[Route], context: ssl.SSLContext, metrics: WebhookMetrics
    ) -> None:
        self.listening = asyncio.Event()
        self._address = address
        self._routes = tuple(routes)
        self._context = context
        self._metrics = metrics

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Listen until cancelled; then answer what has been asked, and end. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=BODY_MAX)
        app.add_routes([web.post(route.path, partial(self._serve, fn, route)) for route in self._routes])
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_DRAIN_S)
        await runner.setup()
        try:
            host, port = self._address.host or None, self._address.port
            await web.TCPSite(runner, host, port, ssl_context=self._context).start()
            self.listening.set()
            yield kopf.WebhookClientConfig(url=f"https://{host or 'localhost'}:{port}")
            await asyncio.Event().wait()
        finally:
            self.listening.clear()
            await runner.cleanup()

    async def _serve(self, fn: kopf.WebhookFn, route: Route, request: web.Request) -> web.Response:
        began = steady()
        metrics, path = self._metrics, route.path
        with metrics.in_flight.labels(path).track_inprogress():
            outcome, response = await self._answer(fn, route, request)
        metrics.latency.labels(path).observe(steady() - began)
        metrics.reviews.labels(path, outcome.value).inc()
        metrics.requests.labels(path, str(response.status)).inc()
        return response

    async def _answer(self, fn: kopf.WebhookFn, route: Route, request: web.Request) -> tuple[Outcome, web.Response]:
        try:
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refusal(route, f"the body is larger than {BODY_MAX} bytes", code=413)
        except TimeoutError:
            return _refusal(route, f"the body did not come within {_BODY_TIMEOUT_S:.0f} s", code=408)
        try:
            review = read_review(body)
        except ReviewError as error:
            return _refusal(route, str(error), code=400)
        if fault := find_fault(route, review):
            return _refusal(route, fault, code=400)
        exchange = Exchange(review=review)
        token = current_exchange.set(exchange)
        try:
            answer = await fn(cast(Any, thin_request(review)), webhook=route.path.lstrip("/"))
        except Exception as error:  # kopf knows no such kind, or failed itself
            exchange.fault = error
        finally:
            current_exchange.reset(token)
        if exchange.fault is not None or exchange.verdict is None:
            reason = type(exchange.fault).__name__ if exchange.fault else "no handler answered"
            log.error("review failed", exc_info=exchange.fault, extra=_facts(route, review))
            text = f"{route.name}: {reason}; see the log of the webhook"
            return Outcome.FAILED, web.Response(status=500, text=text)
        return _tell(route, review, exchange.verdict), web.Response(
            body=encode_answer(cast(Any, answer), patch=exchange.verdict.patch), content_type="application/json"
        )


def _refusal(route: Route, text: str, *, code: int) -> tuple[Outcome, web.Response]:
    log.warning("request refused", extra={"webhook": route.path, "code": code, "because": text})
    return Outcome.REFUSED, web.Response(status=code, text=text)


def _tell(route: Route, review: Review, verdict: Verdict) -> Outcome:
    if verdict.denial:
        log.info("denied", extra={**_facts(route, review), "because": verdict.denial})
        return Outcome.DENIED
    log.debug("allowed", extra={**_facts(route, review), "changes": len(verdict.patch)})
    return Outcome.ALLOWED


def _facts(route: Route, review: Review) -> dict[str, Any]:
    # A Job that is to get a generated name has none yet.
    name = review.name or str(mapping(review.object or {}, "metadata").get("generateName") or "")
    return {
        "webhook": route.path,
        "operation": review.operation,
        "object": f"{review.namespace}/{name}" if review.namespace else name,
        "user": review.user,
        "dry_run": review.dry_run,
    }

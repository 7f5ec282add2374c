"""OpenTelemetry traces, when they are asked for: a span for each pass over a Job, and in it one for each write.

Needs the extra `tracing` and OTEL_EXPORTER_OTLP_ENDPOINT; the SDK's other variables (headers, sampling, resource
attributes) count too. Without them nothing of OpenTelemetry is imported and a pass costs one comparison more.
"""

import logging
import os
import time
from contextlib import AbstractContextManager
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ("Tracing", "load_tracing")

log = logging.getLogger(__name__)

_SWITCHES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Tracing:
    """Makes spans. The context of asyncio's tasks carries the pass to the writes that it asks for."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        self._provider = provider
        self._tracer = provider.get_tracer("vcjob")
        self._client = SpanKind.CLIENT
        self._failed = Status(StatusCode.ERROR)

    def span_of_pass(self, key: tuple[str, str]) -> AbstractContextManager[Any]:
        """Return the span of a pass over a Job, current while it is entered."""
        attributes = {"k8s.namespace.name": key[0], "vcjob.job.name": key[1]}
        return self._tracer.start_as_current_span("reconcile", attributes=attributes)

    def observe_request(self, verb: str, template: str, code: int, seconds: float) -> None:
        """Make the span of a write that has ended just now."""
        if verb not in _WRITES:
            return
        end = time.time_ns()
        span = self._tracer.start_span(
            f"{verb} {template}",
            kind=self._client,
            attributes={"http.request.method": verb, "http.response.status_code": code, "vcjob.resource": template},
            start_time=end - int(seconds * 1e9),
        )
        if not 200 <= code < 400:
            span.set_status(self._failed)
        span.end(end)

    def stop(self, *, within_s: float) -> None:
        """Send what has not been sent yet, and block for so long at most; a collector may not answer at all."""
        thread = Thread(target=self._provider.shutdown, name="last traces", daemon=True)
        thread.start()
        thread.join(within_s)


def load_tracing(*, version: str) -> Tracing | None:
    """Return what makes spans when the environment asks for it; None, with a warning, when the extra is missing."""
    if not any(os.environ.get(switch) for switch in _SWITCHES):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("no traces: install vcjob[tracing]", extra={"error": str(error)})
        return None
    resource = Resource.create(
        {"service.name": os.environ.get("OTEL_SERVICE_NAME", "vcjob"), "service.version": version}
    )
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)  # `stop` does it, and does not wait for ever
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)

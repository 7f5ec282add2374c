"""Metrics of the webhook process in Prometheus form, under controller-runtime's names where it has the same things."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from .routes import ROUTES

__all__ = ("Outcome", "WebhookMetrics")

_LATENCY_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Outcome(StrEnum):
    """How a review ended."""

    ALLOWED = "allowed"
    DENIED = "denied"
    REFUSED = "refused"  # no review, or one that was not for this path
    FAILED = "failed"  # a fault of ours


class WebhookMetrics:
    """Everything that /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        r = self.registry
        self.reviews = Counter(
            "vcjob_admission_reviews_total", "Reviews by webhook and outcome.", ("webhook", "outcome"), registry=r
        )
        self.requests = Counter(
            "controller_runtime_webhook_requests_total", "Requests by HTTP code.", ("webhook", "code"), registry=r
        )
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time from a request to its answer.",
            ("webhook",),
            buckets=_LATENCY_BUCKETS,
            registry=r,
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight", "Requests being answered.", ("webhook",), registry=r
        )
        self.queue_lookup_failures = Counter(
            "vcjob_admission_queue_lookup_failures_total",
            "Times that Queues could not be read; what asked for them was let in.",
            registry=r,
        )
        self.api_requests = Counter(
            "rest_client_requests_total",
            "API requests by verb, resource and HTTP code.",
            ("verb", "resource", "code"),
            registry=r,
        )
        self.certificate_expiry = Gauge(
            "vcjob_webhook_certificate_expiry_timestamp_seconds",
            "When the serving certificate runs out, in seconds since 1970; 0: there is none.",
            registry=r,
        )
        for route in ROUTES:  # series exist from the start, so that a rate over them does
            self.latency.labels(route.path)
            for outcome in Outcome:
                self.reviews.labels(route.path, outcome.value)

    def observe_request(self, verb: str, template: str, code: int, seconds: float) -> None:
        """Count a request to the API server (the API client calls this)."""
        self.api_requests.labels(verb, template, str(code)).inc()

    def show_certificate_expiry(self, read: Callable[[], float]) -> None:
        """Show what `read` returns at each scrape."""
        self.certificate_expiry.set_function(read)

    def render(self) -> bytes:
        """Return the page of /metrics."""
        return generate_latest(self.registry)

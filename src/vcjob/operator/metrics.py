"""Metrics in Prometheus form, under the names that controller-runtime and Volcano use for the same things.

One registry per process. Counters are raised only for what has happened: after a write, not before.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ("Metrics",)

_LATENCY_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_QUEUE_BUCKETS: Final = tuple(10.0**power for power in range(-6, 2))  # seconds; as controller-runtime has them
# Thirty exponential steps from 50 ms to a minute, as Volcano's histogram of the same name has.
_CREATION_BUCKETS: Final = tuple(round(50.0 * (60000.0 / 50.0) ** (step / 29), 3) for step in range(30))


class Metrics:
    """Everything that /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        r = self.registry
        self.requests = Counter(
            "rest_client_requests_total",
            "API requests by verb, resource and HTTP code.",
            ("verb", "resource", "code"),
            registry=r,
        )
        self.latency = Histogram(
            "rest_client_request_duration_seconds",
            "API latency by verb.",
            ("verb",),
            buckets=_LATENCY_BUCKETS,
            registry=r,
        )
        self.reconciles = Counter(
            "controller_runtime_reconcile_total", "Passes over Jobs by result.", ("controller", "result"), registry=r
        )
        self.reconcile_time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Length of a pass.",
            ("controller",),
            buckets=_LATENCY_BUCKETS,
            registry=r,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total", "Passes that failed.", ("controller",), registry=r
        )
        self.queue_time = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a Job waited for its pass once it could have had one.",
            ("name",),
            buckets=_QUEUE_BUCKETS,
            registry=r,
        )
        self.work_time = Histogram(
            "workqueue_work_duration_seconds",
            "How long a pass took, waiting for the API server included.",
            ("name",),
            buckets=_QUEUE_BUCKETS,
            registry=r,
        )
        self.leading = Gauge("leader_election_master_status", "1 on the replica that leads.", ("name",), registry=r)
        # Gauges that only rise: a Counter's name would end in _total, and Volcano's do not.
        self.completed = Gauge(
            "volcano_job_completed_phase_count", "Jobs that completed.", ("job_name", "queue_name"), registry=r
        )
        self.failed = Gauge(
            "volcano_job_failed_phase_count", "Jobs that failed.", ("job_name", "queue_name"), registry=r
        )
        self.pod_creation = Histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "From a Job's creation to that of its Pods.",
            buckets=_CREATION_BUCKETS,
            registry=r,
        )
        self.pods_created = Counter("vcjob_pods_created_total", "Pods created.", registry=r)

    def observe_request(self, verb: str, template: str, code: int, seconds: float) -> None:
        """Count a request (the API client calls this)."""
        self.requests.labels(verb, template, str(code)).inc()
        if verb != "WATCH":
            self.latency.labels(verb).observe(seconds)

    def add_gauges(self, read: Callable[[], Iterable[tuple[str, str, dict[str, str], float]]]) -> None:
        """Show what `read` returns at each scrape: (name, help, labels, value); a name in _total is a counter's."""
        self.registry.register(_Gauges(read))

    def forget_job(self, namespace: str, name: str, queue: str) -> None:
        """Drop the series of a Job that is gone, or they would grow for ever."""
        for counter in (self.completed, self.failed):
            try:
                counter.remove(f"{namespace}/{name}", queue)
            except KeyError:
                pass

    def render(self) -> bytes:
        """Return the page of /metrics."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, read: Callable[[], Iterable[tuple[str, str, dict[str, str], float]]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for name, text, labels, value in self._read():
            if name not in families:
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                families[name] = kind(name, text, labels=list(labels))
            families[name].add_metric(list(labels.values()), value)
        return families.values()

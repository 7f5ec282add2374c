"""The page of /metrics: under the names that dashboards for controllers know, and right."""

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from vcjob.controller.engine import Engine
from vcjob.controller.observer import PassResult
from vcjob.controller.requests import CommandRequest
from vcjob.gang.volcano import VolcanoGang
from vcjob.kube.clock import steady
from vcjob.kube.events import EventRecorder
from vcjob.operator.metrics import Metrics
from vcjob.operator.observing import Observing, read_gauges


class Silence:
    """Stands where the API client and the recorder of Events are, which nothing here calls."""


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def observing(metrics: Metrics) -> Observing:
    return Observing(metrics=metrics, recorder=Silence())  # type: ignore[arg-type]


@pytest.fixture
async def engine(metrics: Metrics, observing: Observing) -> Engine:
    made = Engine(Silence(), gang=VolcanoGang(), observer=observing, assert_leading=lambda: None)  # type: ignore[arg-type]
    metrics.add_gauges(lambda: read_gauges(made, None, EventRecorder(Silence(), instance="pod-0")))  # type: ignore[arg-type]
    return made


def read(metrics: Metrics, wanted: str, /, **labels: str) -> float | None:
    """Return one sample of the page, as a Prometheus server reads it."""
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name == wanted and labels.items() <= dict(sample.labels).items():
                return float(sample.value)
    return None


JOB: Mapping[str, Any] = {"name": "job"}
CONTROLLER: Mapping[str, Any] = {"controller": "job"}


async def test_every_name_is_there_before_anything_has_happened(metrics: Metrics, engine: Engine):
    page = metrics.render().decode()
    for name in (
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds",
        "workqueue_work_duration_seconds",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_active_workers",
        "rest_client_requests_total",
        "rest_client_request_duration_seconds",
        "leader_election_master_status",
        "volcano_job_completed_phase_count",
        "volcano_job_failed_phase_count",
        "volcano_controller_job_to_pod_creation_latency_milliseconds",
        "vcjob_watch_age_seconds",
        "vcjob_store_objects",
        "vcjob_events_waiting",
        "vcjob_events_sent_total",
        "vcjob_events_dropped_total",
        "vcjob_tasks",
        "process_open_fds",
    ):
        assert f"# TYPE {name} " in page, name
    for result in PassResult:
        assert read(metrics, "controller_runtime_reconcile_total", **CONTROLLER, result=result) == 0
    assert read(metrics, "controller_runtime_reconcile_errors_total", **CONTROLLER) == 0


async def test_a_job_that_waits_and_is_looked_at_shows(metrics: Metrics, engine: Engine):
    engine.queue.add(("ns", "j"))
    engine.queue.add(("ns", "j"))
    assert read(metrics, "workqueue_depth", **JOB) == 1
    assert read(metrics, "workqueue_adds_total", **JOB) == 2

    key = await engine.queue.get()
    engine.oldest_pass[key] = steady() - 5
    assert read(metrics, "workqueue_depth", **JOB) == 0
    assert read(metrics, "workqueue_queue_duration_seconds_count", **JOB) == 1
    assert read(metrics, "controller_runtime_active_workers", **CONTROLLER) == 1
    assert (read(metrics, "workqueue_longest_running_processor_seconds", **JOB) or 0) >= 5
    assert (read(metrics, "workqueue_unfinished_work_seconds", **JOB) or 0) >= 5


async def test_a_pass_is_counted_by_its_result(metrics: Metrics, observing: Observing):
    observing.pass_ended(PassResult.SUCCESS, 0.01)
    observing.pass_ended(PassResult.ERROR, 0.2)
    observing.pass_ended(PassResult.REQUEUE_AFTER, 0.01)
    assert [
        read(metrics, "controller_runtime_reconcile_total", **CONTROLLER, result=result) for result in PassResult
    ] == [1, 1, 1]
    assert read(metrics, "controller_runtime_reconcile_errors_total", **CONTROLLER) == 1
    assert read(metrics, "controller_runtime_reconcile_time_seconds_count", **CONTROLLER) == 3
    assert read(metrics, "workqueue_work_duration_seconds_count", **JOB) == 3


async def test_a_pass_of_the_engine_that_fails_is_an_error_and_a_retry(metrics: Metrics, engine: Engine):
    engine.take_command(CommandRequest(namespace="ns", name="c", uid="c", action="AbortJob", target="j", target_uid=""))
    await engine._look(await engine.queue.get())  # the client has no `get`: it stumbles
    assert read(metrics, "controller_runtime_reconcile_total", **CONTROLLER, result="error") == 1
    assert read(metrics, "workqueue_retries_total", **JOB) == 1


def test_a_request_is_counted_by_verb_resource_and_code(metrics: Metrics):
    metrics.observe_request("PATCH", "jobs/status", 409, 0.02)
    metrics.observe_request("WATCH", "pods", 200, 40.0)
    labels = {"verb": "PATCH", "resource": "jobs/status", "code": "409"}
    assert read(metrics, "rest_client_requests_total", **labels) == 1
    assert read(metrics, "rest_client_request_duration_seconds_count", verb="PATCH") == 1
    assert read(metrics, "rest_client_request_duration_seconds_count", verb="WATCH") is None


def test_the_ends_of_jobs_have_volcanos_names_and_go_with_their_job(metrics: Metrics):
    labels = {"job_name": "ns/j", "queue_name": "default"}
    metrics.completed.labels("ns/j", "default").inc()
    assert read(metrics, "volcano_job_completed_phase_count", **labels) == 1
    metrics.forget_job("ns", "j", "default")
    assert read(metrics, "volcano_job_completed_phase_count", **labels) is None

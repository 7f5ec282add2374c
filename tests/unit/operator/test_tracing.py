"""Traces: a span for each pass, with its writes in it; and nothing at all when nobody asked."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.unit.kube.conftest import write_kubeconfig
from tests.unit.kube.fake_server import FakeServer

from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.operator.metrics import Metrics
from vcjob.operator.observing import Observing
from vcjob.operator.tracing import Tracing, load_tracing


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider)


async def test_the_writes_of_a_pass_are_spans_in_its_own(tracing: Tracing, exporter: InMemorySpanExporter, tmp_path):
    observing = Observing(metrics=Metrics(), recorder=None, tracing=tracing)  # type: ignore[arg-type]
    async with FakeServer() as server:
        kubeconfig = write_kubeconfig(tmp_path / "config", f"server: {server.url}", "token: t")
        credentials = load_credentials(kubeconfig=kubeconfig, context=None)
        async with ApiClient(credentials, user_agent="test", observer=tracing.observe_request) as api:

            async def write(name: str) -> None:
                await api.create("/api/v1/namespaces/ns/pods", {"metadata": {"name": name}})

            with observing.passing(("ns", "j")):
                async with asyncio.TaskGroup() as group:  # as the executor does
                    group.create_task(write("a"))
                    group.create_task(write("b"))
                await api.get("/api/v1/namespaces/ns/pods/a")

    *writes, whole = exporter.get_finished_spans()
    assert (whole.name, whole.attributes["vcjob.job.name"]) == ("reconcile", "j")
    assert [span.name for span in writes] == ["POST pods", "POST pods"]
    assert {span.parent.span_id for span in writes} == {whole.context.span_id}
    assert all(whole.start_time <= span.start_time <= span.end_time <= whole.end_time for span in writes)


def test_a_refused_write_is_an_error(tracing: Tracing, exporter: InMemorySpanExporter):
    tracing.observe_request("PATCH", "jobs/status", 409, 0.1)
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["http.response.status_code"] == 409


def test_nothing_is_traced_and_nothing_imported_unless_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert load_tracing(version="1") is None
    program = "import sys, vcjob.operator.process; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_an_endpoint_switches_it_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    tracing = load_tracing(version="1")
    assert tracing is not None
    tracing.stop(within_s=10.0)


def test_a_collector_that_does_not_answer_holds_nobody():
    program = (
        "from vcjob.operator.tracing import load_tracing\n"
        "tracing = load_tracing(version='1')\n"
        "tracing.observe_request('POST', 'pods', 201, 0.1)\n"
        "tracing.stop(within_s=0.2)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert load_tracing(version="1") is None
    assert "install vcjob[tracing]" in caplog.text

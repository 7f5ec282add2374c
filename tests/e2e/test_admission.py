"""The webhook on a cluster: what it refuses, and that nothing but new Jobs depends on it."""

import base64
import json
from collections.abc import Iterator

import pytest
from tests.e2e.harness.helm import RELEASE, Release
from tests.e2e.harness.jobs import job, task
from tests.e2e.harness.kubectl import JOBS, Kubectl, wait_for

WEBHOOK = "deployment/vcjob-webhook"


def test_a_job_gets_its_defaults_when_it_is_applied(kubectl: Kubectl) -> None:
    kubectl.apply(job("plain", task("", 1, "true"), plugins={"mpi": ["--master=default0"]}))
    spec = kubectl.get(JOBS, "plain")["spec"]
    assert spec["tasks"][0]["name"] == "default0"
    assert spec["queue"] == "default"
    assert {"mpi", "ssh", "svc"} <= spec["plugins"].keys()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"plugins": {"svcc": []}}, "did you mean svc?", id="an unknown plugin"),
        pytest.param({"minAvailable": 9}, "'minAvailable' should not be greater", id="a minimum above the replicas"),
        pytest.param({"policies": [{"event": "PodFaild", "action": "RestartJob"}]}, "PodFaild", id="an unknown event"),
    ],
)
def test_a_bad_job_is_refused_with_a_sentence(kubectl: Kubectl, change: dict[str, object], sentence: str) -> None:
    bad = job("bad", task("worker", 2, "true"))
    bad["spec"] |= change
    answer = kubectl.attempt("create", "--dry-run=server", "-f", "-", stdin=json.dumps(bad))
    assert answer.code != 0
    assert sentence in answer.err


def test_a_misspelt_argument_is_a_warning(kubectl: Kubectl) -> None:
    odd = job("odd", task("worker", 1, "true"), plugins={"svc": ["--publish-not-ready-adresses"]})
    answer = kubectl.attempt("create", "-f", "-", stdin=json.dumps(odd))
    assert answer.code == 0
    assert "did you mean --publish-not-ready-addresses?" in answer.err


@pytest.fixture
def webhook_down(release: Release) -> Iterator[None]:
    """Stops every replica of the webhook for the time of a test."""
    release.kubectl("scale", WEBHOOK, "--replicas=0")
    wait_for("the webhook to go", lambda: not release.kubectl.list("pods", "-l", "app.kubernetes.io/component=webhook"))
    yield
    release.kubectl("scale", WEBHOOK, "--replicas=2")
    release.kubectl("rollout", "status", WEBHOOK, "--timeout=120s")


@pytest.fixture
def shaky(kubectl: Kubectl, release: Release) -> Kubectl:
    """A Job whose Pod fails every few seconds, and one that ends later; applied while the webhook still answers."""
    kubectl.apply(
        job(
            "shaky",
            task("worker", 1, "sleep 5; exit 1"),
            maxRetry=99,
            policies=[{"event": "*", "action": "RestartJob"}],
        ),
        job("brief", task("worker", 1, "sleep 30")),
    )
    kubectl.wait_for_pods("shaky", "Running", count=1)
    return kubectl


def test_without_the_webhook_jobs_go_on_and_only_new_ones_are_refused(shaky: Kubectl, webhook_down: None) -> None:
    def retries() -> int:
        return int(shaky.get(JOBS, "shaky")["status"].get("retryCount", 0))

    before = retries()
    new = shaky.attempt("create", "-f", "-", stdin=json.dumps(job("new", task("worker", 1, "true"))))
    assert "failed calling webhook" in new.err
    shaky.wait_for_phase("brief", "Completed")
    wait_for("the Job to be restarted", lambda: retries() > before)
    shaky("run", "bystander", "--image=busybox:1.36", "--restart=Never", "--", "true")  # Pods are nobody's business
    shaky("delete", JOBS, "shaky", "--timeout=60s")


def test_an_upgrade_keeps_the_certificates(release: Release) -> None:
    def trusted() -> str:
        hooks = release.kubectl.get("validatingwebhookconfiguration", RELEASE)["webhooks"]
        return str(hooks[0]["clientConfig"].get("caBundle", ""))

    secret = release.kubectl.get("secret", "vcjob-webhook-cert")["data"]
    before = trusted()
    assert base64.b64decode(before) == base64.b64decode(secret["ca.crt"])
    release.upgrade("--set", "podAnnotations.example\\.org/round=two")
    assert release.kubectl.get("secret", "vcjob-webhook-cert")["data"] == secret
    assert trusted() == before

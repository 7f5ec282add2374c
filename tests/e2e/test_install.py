"""The chart on a cluster: what is installed, tested, upgraded, uninstalled and found again."""

import json

from tests.e2e.harness.helm import CHART, RELEASE, Release
from tests.e2e.harness.jobs import SLEEP, job, task
from tests.e2e.harness.kubectl import JOBS, Kubectl, wait_for


def test_two_replicas_are_ready_and_one_leads(release: Release) -> None:
    pods = release.pods()
    assert len(pods) == 2
    assert release.leader() in pods


def test_the_operator_runs_in_a_namespace_with_restricted_pod_security(release: Release) -> None:
    answer = release.kubectl.attempt(
        "label",
        "namespace",
        release.kubectl.namespace,
        "pod-security.kubernetes.io/enforce=restricted",
        "--overwrite",
        "--dry-run=server",
    )
    assert answer.code == 0
    assert "violate" not in answer.err


def test_the_container_runs_as_nobody_and_cannot_write(release: Release) -> None:
    pod = release.leader()
    assert release.kubectl.execute(pod, "id -u").strip() == "65532"
    assert release.kubectl.attempt("exec", pod, "--", "sh", "-c", "touch /opt/vcjob/x").code != 0
    assert release.kubectl.attempt("exec", pod, "--", "sh", "-c", "touch /tmp/x").code != 0


def test_helm_test_runs_a_job(release: Release) -> None:
    printed = release.helm("test", RELEASE, "--logs", "--timeout=3m")
    assert "Completed PodsSucceeded 2 of 2 Pods succeeded" in printed


def test_probes_and_metrics_answer(release: Release) -> None:
    ask = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:{}').read().decode())"
    pod = release.leader()
    ready = release.kubectl("exec", pod, "--", "python", "-c", ask.format("8081/readyz"))
    assert "[+]rights ok" in ready
    metrics = release.kubectl("exec", pod, "--", "python", "-c", ask.format("8080/metrics"))
    assert "vcjob_leading 1.0" in metrics


def test_a_user_with_the_role_edit_may_write_jobs_and_one_with_view_may_not(kubectl: Kubectl) -> None:
    for role in ("edit", "view"):
        kubectl("create", "serviceaccount", role)
        kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--serviceaccount={kubectl.namespace}:{role}")

    def may(role: str, verb: str) -> bool:
        who = f"--as=system:serviceaccount:{kubectl.namespace}:{role}"
        return kubectl.attempt("auth", "can-i", verb, JOBS, who).code == 0

    assert may("edit", "create")
    assert may("edit", "get")
    assert may("view", "get")
    assert not may("view", "create")


def test_jobs_outlive_an_uninstalled_operator_and_are_found_again(
    kubectl: Kubectl, cluster: Kubectl, release: Release
) -> None:
    kubectl.apply(job("stays", task("worker", 1, SLEEP)), job("ends", task("worker", 1, "sleep 10")))
    before = kubectl.wait_for_pods("stays", "Running", count=1)
    values = release.values()
    release.helm("uninstall", RELEASE, "--wait")
    try:
        assert cluster.get("crd", JOBS) is not None
        assert kubectl.phase("stays") in ("Running", "Pending")
        kubectl.apply(job("later", task("worker", 1, "echo hello")))
        wait_for(
            "the container to end", lambda: kubectl.pods("ends")["ends-worker-0"]["status"]["phase"] == "Succeeded"
        )
        assert kubectl.phase("later") == ""
    finally:
        options = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
        release.upgrade(*options)
    kubectl.wait_for_phase("ends", "Completed")
    kubectl.wait_for_phase("later", "Completed")
    after = kubectl.pods("stays")
    assert after["stays-worker-0"]["metadata"]["uid"] == before["stays-worker-0"]["metadata"]["uid"]


def test_crds_of_somebody_else_are_not_taken_over(cluster: Kubectl, release: Release) -> None:
    answer = release.attempt("install", "second", str(CHART), "--dry-run=server")
    assert answer.code != 0
    assert "--set crds.install=false" in answer.err

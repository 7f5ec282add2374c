"""What happens to Jobs when something is taken away under them: the leader, the version, a node, the namespace."""

import pytest
from tests.e2e.harness.helm import Release
from tests.e2e.harness.jobs import SLEEP, job, task
from tests.e2e.harness.kubectl import JOBS, Kubectl, wait_for


def uids(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Return the UIDs of a Job's Pods."""
    return {pod: found["metadata"]["uid"] for pod, found in kubectl.pods(name).items()}


def test_a_killed_leader_is_replaced_and_no_pod_with_it(kubectl: Kubectl, release: Release) -> None:
    kubectl.apply(job("calm", task("worker", 2, SLEEP), plugins={"svc": []}))
    kubectl.wait_for_pods("calm", "Running", count=2)
    before = uids(kubectl, "calm")
    leader = release.leader()
    release.kubectl("delete", "pod", leader, "--grace-period=0", "--force")
    # Applied while nobody leads.
    kubectl.apply(job("orphan", task("worker", 2, "echo hello")))
    wait_for("another leader", lambda: release.leader() != leader)
    kubectl.wait_for_phase("orphan", "Completed")
    assert uids(kubectl, "calm") == before
    assert kubectl.get(JOBS, "calm")["status"].get("retryCount", 0) == 0
    release.wait_until_ready()


def test_a_job_that_fails_while_nobody_leads_is_dealt_with_once(kubectl: Kubectl, release: Release) -> None:
    shaky = task("worker", 1, "sleep 6; exit 1")
    kubectl.apply(job("once", shaky, maxRetry=5, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    kubectl.wait_for_pods("once", "Running", count=1)
    release.kubectl("delete", "pod", "-l", "app.kubernetes.io/component=operator", "--grace-period=0", "--force")
    wait_for("the Job to be restarted", lambda: kubectl.get(JOBS, "once")["status"].get("retryCount"))
    kubectl.wait_for_pods("once", "Running", count=1)
    assert kubectl.get(JOBS, "once")["status"]["retryCount"] == 1
    release.wait_until_ready()


def test_an_upgrade_of_the_operator_disturbs_no_job(kubectl: Kubectl, release: Release) -> None:
    kubectl.apply(job("train", task("worker", 2, SLEEP), plugins={"svc": [], "ssh": []}))
    kubectl.apply(job("brief", task("worker", 2, "sleep 8")))
    kubectl.wait_for_pods("train", "Running", count=2)
    before, keys = uids(kubectl, "train"), kubectl.get("secret", "train-ssh")["data"]
    old = set(release.pods())
    release.upgrade("--set", "logLevel=debug")
    assert not old & set(release.pods())
    kubectl.wait_for_phase("brief", "Completed")
    kubectl.apply(job("after", task("worker", 1, "echo hello")))
    kubectl.wait_for_phase("after", "Completed")
    assert uids(kubectl, "train") == before
    assert kubectl.get("secret", "train-ssh")["data"] == keys
    assert kubectl.phase("train") == "Running"
    release.upgrade("--set", "logLevel=info")


@pytest.fixture
def drained(cluster: Kubectl) -> "object":
    """Drains a node, and puts it into service again at the end."""
    nodes: list[str] = []

    def drain(node: str) -> None:
        nodes.append(node)
        cluster("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s")

    yield drain
    for node in nodes:
        cluster("uncordon", node)


def test_a_drained_node_restarts_the_job_as_its_policy_says(
    kubectl: Kubectl, release: Release, drained: object
) -> None:
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    kubectl.apply(job("moved", task("worker", 2, SLEEP), plugins={"svc": []}, policies=policies))
    pods = kubectl.wait_for_pods("moved", "Running", count=2)
    before = uids(kubectl, "moved")
    node = pods["moved-worker-0"]["spec"]["nodeName"]
    leader = release.leader()
    assert callable(drained)
    drained(node)
    wait_for(
        "two new Pods",
        lambda: len(set(uids(kubectl, "moved").values()) - set(before.values())) == 2,
        tell=lambda: kubectl.describe("moved"),
    )
    again = kubectl.wait_for_pods("moved", "Running", count=2)
    assert node not in {pod["spec"]["nodeName"] for pod in again.values()}
    moved = kubectl.wait_for_phase("moved", "Running")
    assert moved["status"]["retryCount"] == 1
    # Where the leader went with the node, the next one may find no more than that a Pod is missing.
    release.wait_until_ready()
    assert ("EvictionByEvictionAPI" if release.leader() == leader else "RestartJob") in kubectl.events("moved")


def test_a_deleted_namespace_takes_its_jobs_without_a_trace(
    kubectl: Kubectl, cluster: Kubectl, release: Release
) -> None:
    kubectl.apply(job("doomed", task("worker", 2, SLEEP), plugins={"svc": [], "ssh": []}))
    kubectl.wait_for_pods("doomed", "Running", count=2)
    since = release.leader()
    cluster("delete", "namespace", kubectl.namespace, "--timeout=120s")
    assert cluster.get("namespace", kubectl.namespace) is None
    assert release.leader() == since
    log = release.kubectl("logs", since, "--tail=200")
    assert "Traceback" not in log
    cluster("create", "namespace", kubectl.namespace)  # for the fixture to delete

"""The life of a Job, with containers that really run, fail and end."""

from tests.e2e.harness.jobs import SLEEP, command, job, task
from tests.e2e.harness.kubectl import JOBS, Kubectl, wait_for


def test_a_job_completes_when_its_pods_do(kubectl: Kubectl) -> None:
    kubectl.apply(job("done", task("worker", 2, "echo hello")))
    done = kubectl.wait_for_phase("done", "Completed", "Failed")
    assert done["status"]["state"]["phase"] == "Completed"
    assert done["status"]["succeeded"] == 2
    assert "JobCompleted" in kubectl.events("done")


def test_a_failing_job_says_which_container_failed_and_how(kubectl: Kubectl) -> None:
    kubectl.apply(
        job(
            "broken",
            task("worker", 2, 'test "$VC_TASK_INDEX" = 0 && sleep 20 || { echo out of data; exit 37; }'),
            plugins={"env": []},
            policies=[{"event": "PodFailed", "action": "AbortJob"}],
        )
    )
    broken = kubectl.wait_for_phase("broken", "Aborted")
    message = broken["status"]["state"]["message"]
    assert "broken-worker-1" in message
    assert "main" in message
    assert "37" in message
    assert "broken-worker-1" in kubectl.events("broken")


def test_an_exit_code_chooses_the_action(kubectl: Kubectl) -> None:
    policies = [{"exitCode": 3, "action": "TerminateJob"}, {"event": "PodFailed", "action": "RestartJob"}]
    kubectl.apply(job("chosen", task("worker", 1, "exit 3"), policies=policies))
    chosen = kubectl.wait_for_phase("chosen", "Terminated", "Restarting", "Failed")
    assert chosen["status"]["state"]["phase"] == "Terminated", kubectl.describe("chosen")
    assert "3" in chosen["status"]["state"]["message"]


def test_a_job_that_always_fails_is_restarted_as_often_as_it_may(kubectl: Kubectl) -> None:
    kubectl.apply(
        job("again", task("worker", 1, "exit 1"), maxRetry=2, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    )
    again = kubectl.wait_for_phase("again", "Failed", "Completed", "Aborted", "Terminated")
    assert again["status"]["state"]["phase"] == "Failed", kubectl.describe("again")
    assert again["status"]["retryCount"] == 2


def test_a_restarted_task_leaves_the_others_alone(kubectl: Kubectl) -> None:
    kubectl.apply(
        job(
            "partly",
            task("steady", 1, SLEEP),
            task("shaky", 1, "sleep 5; exit 1", policies=[{"event": "PodFailed", "action": "RestartTask"}]),
            maxRetry=3,
        )
    )
    before = kubectl.wait_for_pods("partly", "Running", count=2)
    wait_for(
        "the shaky task to be made anew",
        lambda: (
            (pod := kubectl.pods("partly").get("partly-shaky-0"))
            and pod["metadata"]["uid"] != before["partly-shaky-0"]["metadata"]["uid"]
        ),
        tell=lambda: kubectl.describe("partly"),
    )
    after = kubectl.pods("partly")
    assert after["partly-steady-0"]["metadata"]["uid"] == before["partly-steady-0"]["metadata"]["uid"]


def test_a_suspended_job_gives_its_pods_back_and_resumes(kubectl: Kubectl) -> None:
    kubectl.apply(job("pause", task("worker", 2, SLEEP), plugins={"svc": []}))
    kubectl.wait_for_pods("pause", "Running", count=2)
    kubectl.apply(command("AbortJob", kubectl.get(JOBS, "pause")))
    kubectl.wait_for_phase("pause", "Aborted")
    wait_for("the Pods to go", lambda: not kubectl.pods("pause"))
    kubectl.apply(command("ResumeJob", kubectl.get(JOBS, "pause")))
    kubectl.wait_for_pods("pause", "Running", count=2)
    running = kubectl.wait_for_phase("pause", "Running")
    assert running["status"].get("retryCount", 0) == 0
    assert not kubectl.list("commands.bus.volcano.sh")


def test_a_job_is_scaled_up_and_down_with_its_hosts(kubectl: Kubectl) -> None:
    sized = job("sized", task("worker", 1, SLEEP), plugins={"svc": []}, minAvailable=1)
    kubectl.apply(sized)
    kubectl.wait_for_pods("sized", "Running", count=1)
    sized["spec"]["tasks"][0]["replicas"] = 3
    kubectl.apply(sized)
    kubectl.wait_for_pods("sized", "Running", count=3)
    assert kubectl.get("configmap", "sized-svc")["data"]["VC_WORKER_NUM"] == "3"
    # The kubelet brings a changed ConfigMap into a running Pod within about a minute.
    wait_for(
        "three hosts in the first Pod",
        lambda: "worker-2" in kubectl.execute("sized-worker-0", "cat /etc/volcano/worker.host"),
    )
    sized["spec"]["tasks"][0]["replicas"] = 2
    kubectl.apply(sized)
    assert sorted(kubectl.wait_for_pods("sized", "Running", count=2)) == ["sized-worker-0", "sized-worker-1"]


def test_a_deleted_job_takes_everything_with_it(kubectl: Kubectl) -> None:
    kubectl.apply(job("gone", task("worker", 2, SLEEP), plugins={"svc": [], "ssh": []}))
    kubectl.wait_for_pods("gone", "Running", count=2)
    kubectl("delete", JOBS, "gone", "--timeout=60s")

    def left() -> list[str]:
        kinds = "pods,services,secrets,configmaps,networkpolicies"
        return [item["metadata"]["name"] for item in kubectl.list(kinds) if item["metadata"]["name"].startswith("gone")]

    wait_for("everything of the Job to go", lambda: not left(), tell=lambda: str(left()))


def test_a_finished_job_goes_after_its_time(kubectl: Kubectl) -> None:
    kubectl.apply(job("brief", task("worker", 1, "true"), ttlSecondsAfterFinished=3))
    kubectl.wait_for_phase("brief", "Completed")
    wait_for("the Job to go", lambda: kubectl.get(JOBS, "brief") is None, patience_s=30)


def test_a_task_waits_until_the_one_that_it_depends_on_runs(kubectl: Kubectl) -> None:
    first, second = task("first", 1, "sleep 3"), task("second", 1, "true", dependsOn={"name": ["first"]})
    # Pending for five seconds, which is long enough to see that the second task has no Pod yet.
    first["template"]["spec"]["initContainers"] = [
        {"name": "wait", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 5"]}
    ]
    kubectl.apply(job("order", first, second, minAvailable=1))
    kubectl.wait_for_pods("order", "Pending", count=1)
    assert list(kubectl.pods("order")) == ["order-first-0"]
    kubectl.wait_for_phase("order", "Completed")
    pods = kubectl.pods("order")
    ran = pods["order-first-0"]["status"]["containerStatuses"][0]["state"]["terminated"]["startedAt"]
    assert pods["order-second-0"]["metadata"]["creationTimestamp"] >= ran


def test_an_image_that_is_not_there_is_told_in_the_status(kubectl: Kubectl) -> None:
    absent = job("absent", task("worker", 1, "true"))
    absent["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "registry.invalid/no-such-image:1"
    kubectl.apply(absent)
    message = wait_for(
        "the status to name the image's trouble",
        lambda: (
            (text := kubectl.get(JOBS, "absent")["status"]["state"].get("message", ""))
            and ("ImagePull" in text or "ErrImage" in text)
            and text
        ),
        tell=lambda: kubectl.describe("absent"),
    )
    assert "absent-worker-0" in message

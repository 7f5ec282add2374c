"""The lives of Jobs that Volcano's own end-to-end tests tell, on a real API server.

All lives run side by side under one operator for each gang back end; each test waits for its own. What a watcher must
have seen of a phase is said in `shows`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.integration.harness.api import (
    CLAIMS,
    CONFIG_MAPS,
    NETWORK_POLICIES,
    SECRETS,
    SERVICES,
    Api,
    Object,
    eventually,
)
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import env_of, events_of, job, state_when, task
from tests.integration.lives.kubelet import FOREVER, PENDING, Fate, fails, succeeds
from tests.integration.lives.stage import LIFE_S, Stage, open_stage

Life = Callable[[Stage, str], Awaitable[None]]
LIVES: dict[str, Life] = {}


def life(tell: Life) -> Life:
    LIVES[tell.__name__] = tell
    return tell


def policy(event: str, action: str, **fields: object) -> Object:
    return {"action": action, **({"event": event} if event else {}), **fields}


# Deletion


@life
async def deleted_while_pending(stage: Stage, name: str) -> None:
    stage.kubelet.groups[name] = "Pending"
    await stage.begin(job(name, task("w", 2), minAvailable=2))
    await stage.sees(name, "Pending")
    await stage.delete(name)


@life
async def deleted_while_running(stage: Stage, name: str) -> None:
    await stage.begin(job(name, task("w", 2), minAvailable=2))
    await stage.sees(name, "Pending", "Running")
    await stage.delete(name)


@life
async def deleted_when_completed(stage: Stage, name: str) -> None:
    await stage.begin(job(name, task("w", 2), minAvailable=2), w=succeeds())
    await stage.sees(name, "Pending", "Running", "Completed")
    await stage.delete(name)


# Policies of the Job


def one_fails(name: str, *policies: Object, task_policies: tuple[Object, ...] = (), **spec: object) -> Object:
    """A Job with a task `bad`, whose Pod fails, and a task `good`."""
    tasks = (task("good", 1), task("bad", 1, policies=list(task_policies)))
    return job(name, *tasks, minAvailable=2, policies=list(policies), **spec)


async def plays(stage: Stage, made: Object, *phases: str, **fates: Fate) -> int:
    await stage.begin(made, **fates)
    return await stage.sees(made["metadata"]["name"], *phases)


@life
async def aborted_by_a_failure(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("PodFailed", "AbortJob"))
    await plays(stage, made, "Pending", "Running", "Aborting", "Aborted", bad=fails(3))
    state = (await stage.job(name))["status"]["state"]
    assert state["reason"] == "PodFailed"
    assert state["message"] == f"pod {name}-bad-0 failed: container main ended with exit code 3; AbortJob"
    await stage.delete(name)


@life
async def terminated_by_a_failure(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("PodFailed", "TerminateJob"))
    await plays(stage, made, "Pending", "Running", "Terminating", "Terminated", bad=fails())
    told = await eventually(
        lambda: events_of(stage.api, name, stage.namespace, reason="ExecuteAction"), timeout_s=LIFE_S
    )
    assert any("TerminateJob" in event["message"] for event in told)
    await stage.delete(name)


@life
async def restarted_by_a_failure(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("PodFailed", "RestartJob"))
    await plays(stage, made, "Pending", "Running", "Restarting", "Pending", "Running", bad=fails())


@life
async def restarted_by_an_exit_code(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("", "RestartJob", exitCode=3))
    await plays(stage, made, "Pending", "Running", "Restarting", bad=fails(3))


@life
async def one_pod_restarted(stage: Stage, name: str) -> None:
    policies = (policy("PodFailed", "RestartPod"), policy("PodEvicted", "TerminateJob", timeout="5m"))
    await plays(stage, one_fails(name, *policies), "Pending", "Running", "Restarting", "Running", bad=fails())
    good = (await stage.pods(name))[f"{name}-good-0"]["metadata"]
    assert good["annotations"]["volcano.sh/job-retry-count"] == "0"


@life
async def the_events_of_a_list(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("", "TerminateJob", events=["PodEvicted", "PodFailed", "PodEvicted"]))
    await plays(stage, made, "Pending", "Running", "Terminating", "Terminated", bad=fails())


async def evicted(stage: Stage, name: str, made: Object, *phases: str) -> None:
    await stage.begin(made)
    at = await stage.sees(name, "Pending", "Running")
    await stage.delete_pod(f"{name}-good-0")
    await stage.sees(name, *phases, since=at)
    assert (await stage.job(name))["status"].get("retryCount", 0) == (1 if phases[0] == "Restarting" else 0)


@life
async def restarted_by_an_eviction(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("PodEvicted", "RestartJob"))
    await evicted(stage, name, made, "Restarting", "Pending", "Running")


@life
async def terminated_by_an_eviction(stage: Stage, name: str) -> None:
    await evicted(stage, name, one_fails(name, policy("PodEvicted", "TerminateJob")), "Terminating", "Terminated")


@life
async def aborted_by_an_eviction(stage: Stage, name: str) -> None:
    await evicted(stage, name, one_fails(name, policy("PodEvicted", "AbortJob")), "Aborting", "Aborted")


@life
async def restarted_by_any_event(stage: Stage, name: str) -> None:
    await evicted(stage, name, one_fails(name, policy("*", "RestartJob")), "Restarting", "Pending", "Running")


@life
async def restarted_by_an_unknown_group(stage: Stage, name: str) -> None:
    await stage.begin(one_fails(name, policy("Unknown", "RestartJob")))
    at = await stage.sees(name, "Pending", "Running")
    stage.kubelet.groups[name] = "Pending"
    await stage.kubelet.move_group(await stage.group(name) or {}, "Unknown")
    at = await stage.sees(name, "Restarting", "Pending", since=at)
    # Only then: the kubelet's word on the new group must not come after ours.
    group = await eventually(lambda: stage.group(name, phase="Pending"), timeout_s=LIFE_S)
    await stage.kubelet.move_group(group or {}, "Inqueue")
    await stage.sees(name, "Running", since=at)


@life
async def aborted_by_an_unknown_group(stage: Stage, name: str) -> None:
    await stage.begin(one_fails(name, policy("Unknown", "AbortJob")))
    at = await stage.sees(name, "Pending", "Running")
    await stage.kubelet.move_group(await stage.group(name) or {}, "Unknown")
    await stage.sees(name, "Aborting", "Aborted", since=at)


@life
async def completed_by_a_task(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("TaskCompleted", "CompleteJob"))
    await plays(stage, made, "Pending", "Completing", "Completed", bad=succeeds())


@life
async def completed_by_the_policy_of_a_task(stage: Stage, name: str) -> None:
    made = one_fails(name, task_policies=(policy("TaskCompleted", "CompleteJob"),))
    await plays(stage, made, "Pending", "Completing", "Completed", bad=succeeds())


@life
async def terminated_by_a_failed_task(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("TaskFailed", "TerminateJob"))
    await plays(stage, made, "Pending", "Terminating", "Terminated", bad=Fate(restarts=4))


# Policies of tasks


@life
async def restarted_by_the_policy_of_a_task(stage: Stage, name: str) -> None:
    made = one_fails(name, task_policies=(policy("PodFailed", "RestartJob"),))
    await plays(stage, made, "Pending", "Running", "Restarting", bad=fails())


@life
async def the_policy_of_a_task_goes_before_that_of_the_job(stage: Stage, name: str) -> None:
    made = one_fails(name, policy("PodFailed", "AbortJob"), task_policies=(policy("PodFailed", "RestartJob"),))
    await plays(stage, made, "Pending", "Running", "Restarting", bad=fails())


async def task_evicted(stage: Stage, name: str, action: str, *phases: str) -> None:
    made = job(name, task("good", 2, policies=[policy("PodEvicted", action)]), minAvailable=2)
    await evicted(stage, name, made, *phases)


@life
async def restarted_by_the_policy_of_an_evicted_task(stage: Stage, name: str) -> None:
    await task_evicted(stage, name, "RestartJob", "Restarting", "Pending", "Running")


@life
async def terminated_by_the_policy_of_an_evicted_task(stage: Stage, name: str) -> None:
    await task_evicted(stage, name, "TerminateJob", "Terminating", "Terminated")


# Ends


@life
async def failed_pods_of_the_last_try_stay(stage: Stage, name: str) -> None:
    policies = [policy("", "RestartJob", events=["PodEvicted", "PodFailed"])]
    made = job(name, task("good", 1), task("bad", 1), minAvailable=2, maxRetry=2, minSuccess=2, policies=policies)
    await plays(stage, made, "Pending", "Running", "Restarting", "Pending", "Failed", bad=fails(after_s=0.5))
    status = (await stage.job(name))["status"]
    assert (status["retryCount"], status["state"]["reason"]) == (2, "MaxRetryReached")

    async def only_the_failed_one_is_left() -> bool:
        pods = await stage.pods(name)
        assert list(pods) == [f"{name}-bad-0"]
        assert "deletionTimestamp" not in pods[f"{name}-bad-0"]["metadata"]
        return True

    await eventually(only_the_failed_one_is_left, timeout_s=LIFE_S)
    assert (await stage.job(name))["status"]["failed"] == 1


@life
async def succeeded_pods_stay(stage: Stage, name: str) -> None:
    made = one_fails(name, task_policies=(policy("TaskCompleted", "CompleteJob"),), maxRetry=1)
    await plays(stage, made, "Pending", "Completing", "Completed", bad=succeeds())
    assert "retryCount" not in (await stage.job(name))["status"]
    assert list(await stage.pods(name)) == [f"{name}-bad-0"]


@life
async def enough_successes_complete_it(stage: Stage, name: str) -> None:
    made = job(name, task("short", 3), task("long", 2), minAvailable=1, minSuccess=2)
    await plays(stage, made, "Pending", "Completed", short=succeeds())
    assert (await stage.job(name))["status"]["succeeded"] >= 2


# Scaling


async def hosts(stage: Stage, name: str, count: int) -> None:
    """Wait until the ConfigMap of the hosts lists so many."""

    async def look() -> bool:
        data = (await stage.api.get(CONFIG_MAPS, f"{name}-svc", stage.namespace))["data"]
        wanted = [f"{name}-w-{i}.{name}" for i in range(count)]
        assert (data["w.host"], data["VC_W_HOSTS"], data["VC_W_NUM"]) == (
            "\n".join(wanted),
            ",".join(wanted),
            str(count),
        )
        return True

    await eventually(look, timeout_s=LIFE_S)


async def scaled(stage: Stage, name: str, *sizes: int) -> None:
    first, *others = sizes
    policies = [policy("PodEvicted", "AbortJob")]
    await stage.begin(job(name, task("w", first), minAvailable=first, plugins={"svc": []}, policies=policies))
    await stage.ready(name, first)
    await hosts(stage, name, first)
    for size in others:
        await stage.scale(name, size, minimum=size)
        await stage.ready(name, size)
        await hosts(stage, name, size)
    await stage.delete(name)


@life
async def scaled_up(stage: Stage, name: str) -> None:
    await scaled(stage, name, 2, 4)


@life
async def scaled_down(stage: Stage, name: str) -> None:
    await scaled(stage, name, 2, 1)


@life
async def scaled_to_zero_and_back(stage: Stage, name: str) -> None:
    await scaled(stage, name, 2, 0, 2)


# Commands


@life
async def suspended_and_resumed(stage: Stage, name: str) -> None:
    await stage.begin(job(name, task("w", 2), minAvailable=2))
    at = await stage.sees(name, "Pending", "Running")
    await stage.command(name, "AbortJob")
    at = await stage.sees(name, "Aborting", "Aborted", since=at)
    assert not await stage.pods(name)
    await stage.command(name, "ResumeJob")
    await stage.sees(name, "Pending", "Running", since=at)
    assert "retryCount" not in (await stage.job(name))["status"]


@life
async def suspended_while_pending(stage: Stage, name: str) -> None:
    stage.kubelet.groups[name] = "Pending"
    await stage.begin(job(name, task("w", 2), minAvailable=2))
    await stage.sees(name, "Pending")
    await stage.command(name, "AbortJob")
    await stage.sees(name, "Aborted")
    assert not await stage.pods(name)


# Claims and groups


@life
async def claims(stage: Stage, name: str) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    volumes: list[Object] = [
        {"mountPath": "/given", "volumeClaimName": f"{name}-mine"},
        {"mountPath": "/made", "volumeClaim": claim},
    ]
    await stage.begin(job(name, task("w", 1), minAvailable=1, volumes=volumes))
    await state_when(stage.api, name, stage.namespace, reason="ClaimNotFound", timeout_s=LIFE_S)
    mine = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": f"{name}-mine"}, "spec": claim}
    await stage.api.create(CLAIMS, mine, stage.namespace)
    await stage.sees(name, "Running")
    named = [volume["volumeClaimName"] for volume in (await stage.job(name))["spec"]["volumes"]]
    assert named[0] == f"{name}-mine" and named[1].startswith(f"{name}-pvc-")
    owned = await stage.api.get(CLAIMS, named[1], stage.namespace)
    assert owned["metadata"]["ownerReferences"][0]["name"] == name


@life
async def the_resources_of_the_group(stage: Stage, name: str) -> None:
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    await stage.begin(job(name, task("a", containers=[container]), task("b", containers=[container]), minAvailable=2))
    await stage.sees(name, "Pending")
    group = await eventually(lambda: stage.group(name), timeout_s=LIFE_S)
    assert group is not None
    uid = (await stage.job(name))["metadata"]["uid"]
    assert group["metadata"]["name"] == f"{name}-{uid}"
    assert group["spec"]["minResources"] == {
        **dict.fromkeys(("count/pods", "pods", "cpu", "requests.cpu", "limits.cpu"), "2"),
        **dict.fromkeys(("memory", "requests.memory", "limits.memory"), "2000Mi"),
        **dict.fromkeys(("nvidia.com/gpu", "requests.nvidia.com/gpu"), "2"),
    }


@life
async def what_the_scheduler_says_is_told(stage: Stage, name: str) -> None:
    stage.kubelet.groups[name] = "Pending"
    await stage.begin(job(name, task("w", 3), minAvailable=3))
    group = await eventually(lambda: stage.group(name), timeout_s=LIFE_S)
    await stage.kubelet.move_group(group or {}, "Pending", unschedulable="3/0 nodes fit")
    await state_when(stage.api, name, stage.namespace, reason="PodGroupPending", timeout_s=LIFE_S)
    told = await eventually(
        lambda: events_of(stage.api, name, stage.namespace, reason="PodGroupPending"), timeout_s=LIFE_S
    )
    assert "unschedulable, reason: 3/0 nodes fit" in told[0]["message"]


# Plugins


@life
async def all_plugins(stage: Stage, name: str) -> None:
    init = [{"name": "init", "image": "i"}]
    plugins: Object = {"ssh": ["--no-root"], "env": [], "svc": []}
    made = job(name, task("w", 1, pod={"initContainers": init}), minAvailable=1, plugins=plugins)
    await plays(stage, made, "Pending", "Running")
    assert await stage.api.find(SECRETS, f"{name}-ssh", stage.namespace)
    assert await stage.api.find(SERVICES, name, stage.namespace)
    pod = (await stage.pods(name))[f"{name}-w-0"]
    assert {f"{name}-ssh", f"{name}-svc"} <= {volume["name"] for volume in pod["spec"]["volumes"]}
    for init_container in (True, False):
        assert {"VK_TASK_INDEX", "VC_TASK_INDEX", "VC_W_HOSTS", "VC_W_NUM"} <= env_of(pod, init=init_container).keys()


@life
async def no_network_policy(stage: Stage, name: str) -> None:
    flags = ["--disable-network-policy=true", "--inject-hosts-env=false"]
    await plays(stage, job(name, task("w", 1), minAvailable=1, plugins={"svc": flags}), "Pending", "Running")
    assert await stage.api.find(NETWORK_POLICIES, name, stage.namespace) is None
    assert await stage.api.find(CONFIG_MAPS, f"{name}-svc", stage.namespace)
    assert not env_of((await stage.pods(name))[f"{name}-w-0"])


@life
async def mpi(stage: Stage, name: str) -> None:
    master = task("master", 1, policies=[policy("TaskCompleted", "CompleteJob")])
    made = job(name, master, task("worker", 2), minAvailable=3, plugins={"mpi": ["--master=master", "--port=22"]})
    await plays(stage, made, "Pending", "Running", "Completing", "Completed", master=succeeds(after_s=1.0))


@life
async def tensorflow(stage: Stage, name: str) -> None:
    worker = task("worker", 2, policies=[policy("TaskCompleted", "CompleteJob")])
    made = job(name, task("ps", 1), worker, minAvailable=3, plugins={"tensorflow": []})
    await plays(stage, made, "Pending", "Running", "Completed", worker=succeeds(after_s=1.0))


@life
async def ray(stage: Stage, name: str) -> None:
    made = job(name, task("head", 1), task("worker", 1), minAvailable=2, plugins={"ray": [], "svc": []})
    await plays(stage, made, "Pending", "Running")
    assert await stage.api.find(SERVICES, name, stage.namespace)


# Waiting


@life
async def dependencies(stage: Stage, name: str) -> None:
    made = job(name, task("first", 1), task("second", 1, dependsOn={"name": ["first"]}), minAvailable=1)
    stage.kubelet.fates[(name, "first")] = PENDING
    await stage.begin(made)
    found = await state_when(stage.api, name, stage.namespace, reason="WaitingForDependencies", timeout_s=LIFE_S)
    assert found["status"]["state"]["message"] == "task second waits for first to be ready"
    assert list(await stage.pods(name)) == [f"{name}-first-0"]
    stage.kubelet.fates[(name, "first")] = FOREVER
    await stage.delete_pod(f"{name}-first-0")  # its successor runs
    await stage.ready(name, 2)


@life
async def the_ttl(stage: Stage, name: str) -> None:
    made = job(name, task("short", 1), task("long", 1), minAvailable=2, minSuccess=1, ttlSecondsAfterFinished=2)
    await plays(stage, made, "Pending", "Running", short=succeeds())

    async def gone() -> bool:
        return await stage.group(name) is None and not await stage.pods(name)

    await eventually(gone, timeout_s=LIFE_S)


NEED_GROUPS = {
    "deleted_while_pending",
    "restarted_by_an_unknown_group",
    "aborted_by_an_unknown_group",
    "suspended_while_pending",
    "the_resources_of_the_group",
    "what_the_scheduler_says_is_told",
}
WITHOUT_GROUPS = (
    "aborted_by_a_failure", "restarted_by_a_failure", "one_pod_restarted", "restarted_by_an_eviction",
    "failed_pods_of_the_last_try_stay", "scaled_to_zero_and_back", "suspended_and_resumed", "mpi",
)  # fmt: skip
PLAYED = [*(("volcano", name) for name in LIVES), *(("none", name) for name in WITHOUT_GROUPS)]


@pytest.fixture(scope="module")
async def played(
    control_plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[tuple[str, str], "asyncio.Task[None]"]]:
    """All lives, under way."""
    folder = tmp_path_factory.mktemp("lives")
    async with (
        open_stage(api, control_plane, folder=folder, gang="volcano") as (volcano, first),
        open_stage(api, control_plane, folder=folder, gang="none") as (none, second),
    ):
        await asyncio.gather(first.start(), second.start())
        stages = {"volcano": volcano, "none": none}
        tasks = {
            (gang, name): asyncio.create_task(tell_one(stages[gang], name), name=f"{gang} {name}")
            for gang, name in PLAYED
        }
        yield tasks
        for task_ in tasks.values():
            task_.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def tell_one(stage: Stage, name: str) -> None:
    await LIVES[name](stage, name.replace("_", "-")[:40].rstrip("-"))


@pytest.mark.parametrize(("gang", "name"), [pytest.param(*pair, id=" ".join(pair)) for pair in PLAYED])
async def test_a_watcher_sees_the_life(played, gang: str, name: str):
    await played[(gang, name)]

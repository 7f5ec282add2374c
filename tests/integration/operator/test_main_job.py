"""The main job: a Job becomes Pods and their objects, lives and ends, with the fewest writes that tell of it."""

import asyncio
from collections import Counter

from tests.integration.conftest import StartOperator
from tests.integration.harness.api import (
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    POD_GROUPS,
    QUEUES,
    SECRETS,
    SERVICES,
    Api,
    Object,
    Refused,
    eventually,
)
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import env_of, events_of, in_phase, job, play, pods_of, pods_when, state_when, task
from tests.integration.harness.kubectl import Kubectl

from vcjob.cluster.audit import WRITES, AuditedCall
from vcjob.cluster.manifests import OPERATOR_USER

READS = frozenset({"get", "list"})
PLUGINS: dict[str, list[str]] = {"env": [], "svc": [], "ssh": []}

TENSORFLOW = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: dist-mnist
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {env: [], svc: []}
  tasks:
  - name: ps
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        initContainers: [{name: prepare, image: busybox}]
        containers: [{name: tensorflow, image: "tf:1", ports: [{containerPort: 2222, name: tfjob-port}]}]
  - name: worker
    replicas: 2
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      metadata: {labels: {app: mnist}}
      spec:
        restartPolicy: Never
        containers: [{name: tensorflow, image: "tf:1"}]
"""


def calls_in(plane: ControlPlane, namespace: str, *, since: int, verbs: frozenset[str]) -> list[AuditedCall]:
    """The operator's calls about one namespace."""
    calls = plane.audit.calls(since=since, user=OPERATOR_USER, verbs=verbs)
    return [call for call in calls if call.namespace == namespace]


def count(calls: list[AuditedCall], *verbs: str) -> dict[str, int]:
    """How often each resource was called upon."""
    return dict(Counter(call.resource for call in calls if call.verb in verbs))


async def test_a_job_becomes_its_pods_and_objects(operator: StartOperator, api: Api, namespace: str, kubectl: Kubectl):
    await operator("--namespace", namespace)
    await kubectl("apply", "-f", "-", stdin=TENSORFLOW)
    pods = await pods_when(api, "dist-mnist", namespace, count=3)
    found = await in_phase(api, "dist-mnist", namespace, "Pending")

    assert sorted(pods) == ["dist-mnist-ps-0", "dist-mnist-worker-0", "dist-mnist-worker-1"]
    pod = pods["dist-mnist-worker-1"]
    identity = {
        "volcano.sh/job-name": "dist-mnist",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/queue-name": "default",
    }
    assert pod["metadata"]["labels"] == identity | {"volcano.sh/job-namespace": namespace, "app": "mnist"}
    assert pod["metadata"]["annotations"] == identity | {
        "scheduling.k8s.io/group-name": f"dist-mnist-{found['metadata']['uid']}",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": "dist-mnist-worker",
    }
    assert pod["metadata"]["ownerReferences"] == [owner_of(found)]
    assert pod["spec"]["schedulerName"] == "default-scheduler"  # there is no gang scheduler
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("dist-mnist-worker-1", "dist-mnist")
    seen = {
        "VK_TASK_INDEX": "0",
        "VC_TASK_INDEX": "0",
        "VC_PS_HOSTS": "configMapKeyRef/dist-mnist-svc/VC_PS_HOSTS",
        "VC_PS_NUM": "configMapKeyRef/dist-mnist-svc/VC_PS_NUM",
        "VC_WORKER_HOSTS": "configMapKeyRef/dist-mnist-svc/VC_WORKER_HOSTS",
        "VC_WORKER_NUM": "configMapKeyRef/dist-mnist-svc/VC_WORKER_NUM",
    }
    assert env_of(pods["dist-mnist-ps-0"]) == seen
    assert env_of(pods["dist-mnist-ps-0"], init=True) == seen

    hosts = await api.get(CONFIG_MAPS, "dist-mnist-svc", namespace)
    assert hosts["metadata"]["ownerReferences"] == [owner_of(found)]
    assert hosts["data"] == {
        "VC_PS_HOSTS": "dist-mnist-ps-0.dist-mnist",
        "VC_PS_NUM": "1",
        "VC_WORKER_HOSTS": "dist-mnist-worker-0.dist-mnist,dist-mnist-worker-1.dist-mnist",
        "VC_WORKER_NUM": "2",
        "ps.host": "dist-mnist-ps-0.dist-mnist",
        "worker.host": "dist-mnist-worker-0.dist-mnist\ndist-mnist-worker-1.dist-mnist",
    }
    selector = {"volcano.sh/job-name": "dist-mnist", "volcano.sh/job-namespace": namespace}
    service = await api.get(SERVICES, "dist-mnist", namespace)
    assert (service["spec"]["clusterIP"], service["spec"]["selector"]) == ("None", selector)
    policy = await api.get(NETWORK_POLICIES, "dist-mnist", namespace)
    assert policy["spec"] == {
        "podSelector": {"matchLabels": selector},
        "ingress": [{"from": [{"podSelector": {"matchLabels": selector}}]}],
        "policyTypes": ["Ingress"],
    }
    assert found["status"]["controlledResources"] == {"plugin-env": "env", "plugin-svc": "svc"}

    await play(api, pods.values(), "Running")
    running = await in_phase(api, "dist-mnist", namespace, "Running")
    assert running["status"]["minAvailable"] == 3
    workers = [pod for name, pod in pods.items() if "worker" in name]
    await play(api, workers, "Succeeded")
    done = await in_phase(api, "dist-mnist", namespace, "Completed")
    assert [c["status"] for c in done["status"]["conditions"]] == ["Pending", "Running", "Completing", "Completed"]
    assert "succeeded" not in done["metadata"]
    assert "finalizers" not in done["metadata"]
    assert set(done["metadata"].get("annotations", {})) == {"kubectl.kubernetes.io/last-applied-configuration"}


async def test_every_write_tells_something(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    process = await operator("--namespace", namespace)
    mark = control_plane.audit.mark()
    await api.create(JOBS, job("j", task("w", 3), minAvailable=3, plugins=PLUGINS), namespace)
    pods = (await pods_when(api, "j", namespace, count=3)).values()
    for phase, outcome in (("Running", "Running"), ("Succeeded", "Completed")):
        await play(api, pods, phase)
        await in_phase(api, "j", namespace, outcome)
    await eventually(lambda: count(calls_in(control_plane, namespace, since=mark, verbs=WRITES), "delete") == GONE)

    writes = calls_in(control_plane, namespace, since=mark, verbs=WRITES)
    assert {call.code for call in writes} <= {200, 201}
    made = count(writes, "create")
    events = made.pop("events", 0)
    assert made == {"configmaps": 1, "services": 1, "networkpolicies": 1, "secrets": 1, "pods": 3}
    assert events <= 2  # Pods created, Job completed
    updated = count(writes, "update")
    assert set(updated) == {"jobs/status"}
    assert updated["jobs/status"] <= 4  # Pending, the three Pods in it, Running, Completed
    assert count(writes, "patch", "deletecollection") == {}
    reads = calls_in(control_plane, namespace, since=mark, verbs=READS)
    # kopf lists each of its kinds once, a moment after the operator is ready.
    assert [call for call in reads if (call.verb, call.resource) not in (("list", "commands"), ("list", "jobs"))] == []
    assert {call.agent.partition("/")[0] for call in writes} == {"vcjob"}
    status, page = await process.get(f"{process.metrics_url}/metrics")
    assert (status, "vcjob_pods_created_total 3.0" in page) == (200, True)


GONE = {"configmaps": 1, "services": 1, "networkpolicies": 1, "secrets": 1}


async def test_at_rest_nothing_is_written_and_nothing_read(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    process = await operator("--namespace", namespace)
    names = [f"rest-{i}" for i in range(20)]
    for name in names:
        await api.create(JOBS, job(name, task("w", 2), plugins=PLUGINS), namespace)
    every = [pod for name in names for pod in (await pods_when(api, name, namespace, count=2)).values()]
    await play(api, every, "Running")
    for name in names:
        await in_phase(api, name, namespace, "Running")
    await settle(control_plane, namespace)

    mark = control_plane.audit.mark()
    for name in names:  # changes that mean nothing to the operator
        await api.patch(JOBS, name, {"metadata": {"annotations": {"somebody": "else"}}}, namespace)
    await asyncio.sleep(2.0)
    assert calls_in(control_plane, namespace, since=mark, verbs=WRITES | READS) == []

    await process.restart()  # a new process looks at everything, and finds nothing to write
    await asyncio.sleep(2.0)
    assert calls_in(control_plane, namespace, since=mark, verbs=WRITES) == []
    read = calls_in(control_plane, namespace, since=mark, verbs=READS)
    assert count(read, "get") == {}
    assert set(count(read, "list")) == {"jobs", "pods", "commands"}


async def test_a_gang_waits_for_its_podgroup(operator: StartOperator, api: Api, namespace: str):
    await make_default_queue(api)
    await operator("--namespace", namespace, "--gang-scheduler", "volcano")
    template = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]}
    body = job("gang", task("w", 3, pod=template), minAvailable=2, schedulerName="volcano", plugins={"svc": []})
    created = await api.create(JOBS, body, namespace)
    found = await state_when(api, "gang", namespace, phase="Pending", reason="PodGroupPending")
    name = f"gang-{created['metadata']['uid']}"
    group = await api.get(POD_GROUPS, name, namespace)
    assert group["metadata"]["ownerReferences"] == [owner_of(found)]
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minTaskMember"] == {"w": 3}
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["minResources"]["cpu"] == "1"
    assert await pods_of(api, "gang", namespace) == {}
    assert await api.get(CONFIG_MAPS, "gang-svc", namespace)

    await api.patch(POD_GROUPS, name, {"status": {"phase": "Inqueue"}}, namespace)
    pods = await pods_when(api, "gang", namespace, count=3)
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"volcano"}
    await play(api, pods.values(), "Running")
    await in_phase(api, "gang", namespace, "Running")
    await play(api, pods.values(), "Failed", exit_code=3)
    await in_phase(api, "gang", namespace, "Failed")

    async def is_gone() -> bool:
        return await api.find(POD_GROUPS, name, namespace) is None

    await eventually(is_gone, what="the end of the PodGroup")


async def test_odd_and_broken_jobs_do_not_hurt_others(operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace)
    huge = [{"name": f"V{i}", "value": "x" * 1000} for i in range(900)]
    two = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    odd = {
        "emoji": task(
            "w", 1, containers=[{"name": "main", "image": "i", "env": [{"name": "SMILE", "value": "☺ $(X) {{y}}"}]}]
        ),
        "huge": task("w", 2, containers=[{"name": "main", "image": "i", "env": huge}]),
        "two": task("w", 1, containers=two),
        "dotted": task("w", 1, pod={"hostname": "fixed"}),
    }
    bad = {
        # What no schema sees, so that only the API server refuses the Pod.
        "bad-volume": task(
            "w", 3, containers=[{"name": "main", "image": "i", "volumeMounts": [{"name": "no", "mountPath": "/x"}]}]
        ),
        "bad-label": task("w", 3)
        | {"template": {"metadata": {"labels": {"a b": "c"}}, "spec": task("w")["template"]["spec"]}},
        "bad-class": task("w", 1, pod={"priorityClassName": "there-is-none"}),
        "bad-account": task("w", 1, pod={"serviceAccountName": "there-is-none"}),
    }
    for name, content in bad.items():
        await api.create(JOBS, job(name, content, plugins=PLUGINS), namespace)
    for name, content in odd.items():
        await api.create(JOBS, job(name, content, plugins=PLUGINS), namespace)
    await api.create(JOBS, job("unknown", task("w"), plugins={"there-is-none": []}), namespace)
    await api.create(
        JOBS, job("arguments", task("w"), plugins={"svc": ["--nonsense=1", "--disable-network-policy"]}), namespace
    )
    await api.create(JOBS, job("good", task("w", 2), plugins=PLUGINS), namespace)

    await play(api, (await pods_when(api, "good", namespace, count=2)).values(), "Running")
    await in_phase(api, "good", namespace, "Running")
    for name, replicas in (("emoji", 1), ("huge", 2), ("two", 1), ("dotted", 1), ("arguments", 1)):
        await pods_when(api, name, namespace, count=replicas)
    assert await api.find(NETWORK_POLICIES, "arguments", namespace) is None
    (event,) = await events_of(api, "arguments", namespace, reason="PluginArgument")
    assert (event["type"], "nonsense" in event["message"]) == ("Warning", True)

    for name in ("bad-volume", "bad-label", "unknown"):
        failed = await in_phase(api, name, namespace, "Failed")
        assert failed["status"]["state"]["reason"] == "InvalidSpec", name
        assert await pods_of(api, name, namespace) == {}
        for kind in (CONFIG_MAPS, SECRETS):
            assert [o for o in await api.list(kind, namespace) if o["metadata"]["name"].startswith(f"{name}-")] == []
    for name in ("bad-class", "bad-account"):  # what is missing may come yet

        async def waits(name: str = name) -> bool:
            state = (await api.get(JOBS, name, namespace))["status"]["state"]
            return state["phase"] == "Pending" and "there-is-none" in state.get("message", "")

        await eventually(waits, what=f"the reason why {name} waits")
    assert process.running


def owner_of(found: Object) -> Object:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


async def make_default_queue(api: Api) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    try:
        await api.create(QUEUES, queue | {"spec": {"weight": 1}})
    except Refused as refused:
        if refused.code != 409:
            raise


async def settle(plane: ControlPlane, namespace: str, *, quiet_s: float = 1.0) -> None:
    """Wait until the operator has written nothing in the namespace for a while."""
    async with asyncio.timeout(30):
        while True:
            mark = plane.audit.mark()
            await asyncio.sleep(quiet_s)
            if not calls_in(plane, namespace, since=mark, verbs=WRITES):
                return

"""Nobody stands in anybody's way: big Jobs, hostile Jobs, and Pods that are none of our business."""

import asyncio
import re
from typing import Any

from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.faults.lives import ends, live, new_pods
from tests.integration.harness.api import JOBS, NAMESPACES, PODS, Api, Object, Refused, eventually
from tests.integration.harness.jobs import job, pods_of, pods_when, task
from tests.integration.harness.operator import OperatorProcess

BIG = 10_000
NOWHERE: Object = {"schedulerName": "nobody"}


async def clear(api: Api, namespace: str) -> None:
    """Delete all Pods; one call gives up before a slow machine has deleted ten thousand."""

    async def is_done() -> bool:
        try:
            await api.call("DELETE", PODS.path(namespace), params={"gracePeriodSeconds": "0"})
        except (TimeoutError, Refused):
            return False
        return True

    await eventually(is_done, timeout_s=240, what="the end of all Pods")


async def test_a_job_of_ten_thousand_pods_does_not_delay_one_of_a_single_pod(
    operator: StartOperator, api: Api, namespace: str
):
    other = f"{namespace}-other"
    await make_namespace(api, name=other)
    process = await operator(f"--namespace={namespace}", f"--namespace={other}")
    await api.create(JOBS, job("big", task("w", BIG, pod=NOWHERE)), namespace)

    async def big_pods() -> list[int]:
        """Return their resourceVersions, which tell in which order they were made."""
        answer = await api.call("GET", PODS.path(namespace), params={"labelSelector": "volcano.sh/job-name=big"})
        return [int(pod["metadata"]["resourceVersion"]) for pod in answer["items"]]

    async def is_under_way() -> bool:
        return len(await big_pods()) > 200

    await eventually(is_under_way, timeout_s=60)
    for small, where in (("beside", namespace), ("apart", other)):
        asked = await api.create(JOBS, job(small, task("w", 1, pod=NOWHERE)), where)
        (pod,) = (await pods_when(api, small, where, count=1, timeout_s=60)).values()
        first, last = (int(it["metadata"]["resourceVersion"]) for it in (asked, pod))
        made = await big_pods()
        assert len(made) < BIG, "the big Job was to be under way still"
        between = sum(first < version < last for version in made)
        assert between < BIG // 10, f"{between} Pods of the big Job went before that of the small one"
    await process.kill()
    for name in (namespace, other):
        await clear(api, name)
    await api.delete(NAMESPACES, other)


async def test_pods_of_others_leave_no_trace(operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace)
    await api.create(JOBS, job("ours", task("w", 2, pod=NOWHERE)), namespace)
    await pods_when(api, "ours", namespace, count=2)
    await eventually(lambda: has_in_store(process, 2))

    async def come_and_go(number: int) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"}
        await api.create(PODS, {"metadata": {"name": f"foreign-{number}"}, "spec": spec}, namespace)
        for change in range(3):
            labels = {"metadata": {"labels": {"turn": str(change)}}}
            await api.patch(PODS, f"foreign-{number}", labels, namespace)

    for start in range(0, 300, 50):
        await asyncio.gather(*(come_and_go(number) for number in range(start, start + 50)))
    # A Pod of our own, made after all of those, is known: so they have all been passed over by then.
    await api.create(JOBS, job("last", task("w", 1, pod=NOWHERE)), namespace)
    await pods_when(api, "last", namespace, count=1)
    await eventually(lambda: has_in_store(process, 3))


async def has_in_store(process: OperatorProcess, count: int) -> bool:
    _, page = await process.get(f"{process.metrics_url}/metrics")
    found = re.search(r'^vcjob_store_objects\{kind="pods"\} (\S+)$', page, re.M)
    assert found is not None
    return float(found[1]) == count


def hostile_jobs() -> list[Object]:
    """Jobs that mean harm, or do some: too many Pods, too large, nonsense in every place that takes any."""

    def with_pod(name: str, **pod: Any) -> Object:
        return job(name, task("w", 1, pod=pod))

    large = [{"name": "c", "image": "i", "env": [{"name": f"V{i}", "value": "x" * 1000} for i in range(1000)]}]
    many = [task(f"t{i}", 1, pod=NOWHERE) for i in range(300)]
    return [
        job("two-billion", task("w", 2**31 - 1)),
        job("many-billions", *(task(f"t{i}", 2**31 - 1) for i in range(20)), plugins={"svc": [], "ssh": [], "env": []}),
        job("a-mebibyte", task("w", 2, containers=large), plugins={"env": [], "svc": [], "ssh": []}),
        job("three-hundred-tasks", *many, plugins={"svc": [], "tensorflow": [], "pytorch": [], "mpi": [], "ray": []}),
        job("all-plugins", task("w", 3), plugins={name: ["--größe=∞", "\u0000", "--port"] for name in PLUGINS}),
        job("no-such-plugin", task("w", 1), plugins={"nope": []}),
        job("no-tasks"),
        job("n" * 63, task("w" * 63, 1)),
        job("a-circle", task("a", 1, dependsOn={"name": ["b"]}), task("b", 1, dependsOn={"name": ["a"]})),
        job("odd-policies", task("w", 1), policies=[{"event": "PodFailed", "action": "Explode", "timeout": "-5x"}]),
        job("no-containers", {"name": "w", "replicas": 1, "template": {}}),
        job("no-template", {"name": "w", "replicas": 1}),
        with_pod("odd-image", containers=[{"name": "c", "image": "größer als ∞"}]),
        with_pod("odd-quantity", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "-1"}}}]),
        with_pod("odd-names", hostname="日本語", subdomain="-", nodeName="\u0007"),
        with_pod("odd-volumes", volumes=[{"name": "x"}, {"name": "x"}]),
        job("odd-volume", task("w", 1), volumes=[{"mountPath": "a:b", "volumeClaim": {}}]),
        job("odd-claim", task("w", 1), volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["Never"]}}]),
        job("odd-priority", task("w", 1), priorityClassName="Größe", queue="../../etc"),
    ]


PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")


async def test_hostile_jobs_harm_nobody_but_themselves(operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace)
    taken = []
    for hostile in hostile_jobs():
        try:
            taken.append((await api.create(JOBS, hostile, namespace))["metadata"]["name"])
        except Refused as refused:
            assert refused.code in (400, 422), refused
    assert len(taken) >= 8, "the API server was to take most of them"
    await api.create(JOBS, job("good", task("w", 2), plugins={"svc": [], "env": []}), namespace)
    await ends(api, "good", namespace, pods=await new_pods(api, "good", namespace, count=2), retries=0)

    async def all_say_something() -> bool:
        for name in taken:
            state = (await api.get(JOBS, name, namespace)).get("status", {}).get("state", {})
            assert state.get("reason") or state.get("message"), f"{name} says {state}"
        return True

    await eventually(all_say_something, timeout_s=60)
    for name in ("two-billion", "many-billions"):
        found = await api.get(JOBS, name, namespace)
        assert found["status"]["state"]["phase"] == "Failed"
        assert found["status"]["state"]["reason"] == "InvalidSpec"
        assert not await pods_of(api, name, namespace)
    log = await asyncio.to_thread(process.last_lines, 5000)
    assert "failed unexpectedly" not in log
    assert process.running
    await live(api, namespace)

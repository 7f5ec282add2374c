#!/usr/bin/env python3
"""CPU that each kind of write costs the API server: `python tests/bench/writes.py [--count 1000] [--runs 3]`.

On a control plane of its own and without an operator, each kind is written many times, 64 in flight, and the processor
time of the kube-apiserver process is read before and after. Prints the medians of the runs; a first one does not count.
"""

import argparse
import asyncio
import random
import re
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from throughput import BATCH, CONTAINER, GROUPS, Process, each, make_job, new_namespace, surroundings

from vcjob.api.names import LABEL_JOB_NAME
from vcjob.gang.none import NoGang
from vcjob.kube.client import JSON, ApiClient
from vcjob.kube.protobuf import PROTOBUF, PROTOBUF_WATCH
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.revision import compile_job

Write = Callable[[int], Awaitable[object]]

WATCHED = {"the same, watched in JSON": JSON, "the same, watched in protobuf": PROTOBUF_WATCH}


def our_pod() -> dict[str, Any]:
    """Return a Pod as the operator makes it, with the plugins env and svc."""
    raw = make_job("j", 1)
    raw["metadata"] |= {"namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 1}
    renderer = PodRenderer(compile_job(raw), gang=NoGang(gang_scheduler_name="none"), version=0, retry_count=0)
    manifest: dict[str, Any] = plain(renderer.render(Member(task="t0", index=0)).manifest)
    del manifest["metadata"]["namespace"]
    return manifest


def plain(value: Any) -> Any:
    """Return plain dicts and lists of a manifest, which may hold ready JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def kinds_of_write(api: ApiClient, namespace: str) -> dict[str, Write]:
    """Return the writes in the order in which they build on each other."""
    core, pod = f"/api/v1/namespaces/{namespace}", our_pod()
    jobs, groups = f"{BATCH}/namespaces/{namespace}/jobs", f"{GROUPS}/namespaces/{namespace}/podgroups"
    policies = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    owners = pod["metadata"]["ownerReferences"]
    peers = {"podSelector": {"matchLabels": {"a": "b"}}}
    bare = {"restartPolicy": "Never", "schedulerName": "volcano", "containers": [CONTAINER]}
    policy = {**peers, "ingress": [{"from": [peers]}], "policyTypes": ["Ingress"]}
    group = {"minMember": 1, "queue": "default", "minResources": {"cpu": "10m", "memory": "16Mi", "count/pods": "1"}}

    def create(path: str, prefix: str, *, accept: str | None = None, **fields: Any) -> Write:
        def write(number: int) -> Awaitable[object]:
            metadata = {**fields.get("metadata", {"ownerReferences": owners}), "name": f"{prefix}{number}"}
            return api.create(path, {**fields, "metadata": metadata}, accept=accept)

        return write

    made: dict[int, Any] = {}

    async def create_job(number: int) -> None:
        made[number] = msgspec.json.decode(await api.create(jobs, make_job(f"j{number}", 1)))

    def put_status(number: int) -> Awaitable[object]:
        status = {"state": {"phase": "Pending"}, "minAvailable": 1, "pending": 1}
        head = {key: made[number][key] for key in ("apiVersion", "kind", "metadata")}
        return api.put(f"{jobs}/j{number}/status", {**head, "status": status})

    inqueue = {"status": {"phase": "Inqueue"}}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return {
        "a bare Pod": create(f"{core}/pods", "bare", metadata={}, spec=bare),
        "a Pod as ours are": create(f"{core}/pods", "pod", accept=PROTOBUF, **pod),
        **{what: create(f"{core}/pods", f"w{n}-", accept=PROTOBUF, **pod) for n, what in enumerate(WATCHED)},
        "ConfigMap": create(f"{core}/configmaps", "c", data={"t0.host": "j-t0-0.j"}),
        "Service": create(f"{core}/services", "s", spec={"clusterIP": "None", "selector": {"a": "b"}}),
        "NetworkPolicy": create(policies, "n", spec=policy),
        "PodGroup": create(groups, "g", **kind, spec=group),
        "admission of a PodGroup": lambda number: api.merge_patch(f"{groups}/g{number}", inqueue),
        "Job": create_job,
        "status of a Job": put_status,
    }


@asynccontextmanager
async def watching(api: ApiClient, accept: str | None) -> AsyncIterator[None]:
    """Have a watcher of all Pods meanwhile, in the given form, who does not look at what he is told."""
    if accept is None:
        yield
        return
    begun = asyncio.Event()

    async def watch() -> None:
        async for _ in api.stream("/api/v1/pods", {"watch": "1", "labelSelector": LABEL_JOB_NAME}, accept=accept):
            begun.set()

    task = asyncio.create_task(watch())
    await begun.wait()
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="writes of each kind in a run (default 1000)")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    spent: dict[str, list[float]] = {}
    async with surroundings() as (api, around):
        found = re.search(r"kube-apiserver\s.*pid (\d+)", around.vcjob("status"))
        if found is None:
            raise SystemExit("the API server's process is not to be found")
        server = Process(int(found[1]))
        warm_up = kinds_of_write(api, await new_namespace(api, "warm-up"))
        for write in warm_up.values():
            await each(given.count, write, at_once=64)
        for _ in range(given.runs):
            kinds = [*kinds_of_write(api, await new_namespace(api, "writes")).items()]
            # A server's heap grows, and with it what a write costs: no kind of Pod is always the last.
            pods, others = kinds[: 2 + len(WATCHED)], kinds[2 + len(WATCHED) :]
            random.shuffle(pods)
            for what, write in (*pods, *others):
                async with watching(api, WATCHED.get(what)):
                    before = server.cpu_s()
                    await each(given.count, write, at_once=64)
                    spent.setdefault(what, []).append((server.cpu_s() - before) / given.count * 1000)
    for what, costs in spent.items():
        print(f"{what:<30} {statistics.median(costs):5.2f} ms  ({min(costs):.2f}-{max(costs):.2f})")


if __name__ == "__main__":
    asyncio.run(main())

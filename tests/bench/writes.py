#!/usr/bin/env python3
"""CPU that each kind of write costs the API server: `python tests/bench/writes.py [--count 1000] [--runs 3]`.

On a control plane of its own and without an operator, each kind is written many times, 64 in flight, and the processor
time of the kube-apiserver process is read before and after. Prints the medians of the runs; a first one does not count.
"""

import argparse
import asyncio
import re
import statistics
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from throughput import BATCH, CONTAINER, GROUPS, Process, each, make_job, new_namespace, surroundings

from vcjob.gang.none import NoGang
from vcjob.kube.client import ApiClient
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.revision import compile_job

Write = Callable[[int], Awaitable[object]]


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

    def create(path: str, prefix: str, **fields: Any) -> Write:
        def write(number: int) -> Awaitable[object]:
            metadata = {**fields.get("metadata", {"ownerReferences": owners}), "name": f"{prefix}{number}"}
            return api.create(path, {**fields, "metadata": metadata})

        return write

    def patch(path: str, prefix: str, suffix: str, **status: Any) -> Write:
        return lambda number: api.merge_patch(f"{path}/{prefix}{number}{suffix}", {"status": status})

    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return {
        "a bare Pod": create(f"{core}/pods", "bare", metadata={}, spec=bare),
        "a Pod as ours are": create(f"{core}/pods", "pod", **pod),
        "ConfigMap": create(f"{core}/configmaps", "c", data={"t0.host": "j-t0-0.j"}),
        "Service": create(f"{core}/services", "s", spec={"clusterIP": "None", "selector": {"a": "b"}}),
        "NetworkPolicy": create(policies, "n", spec=policy),
        "PodGroup": create(groups, "g", **kind, spec=group),
        "admission of a PodGroup": patch(groups, "g", "", phase="Inqueue"),
        "Job": lambda number: api.create(jobs, make_job(f"j{number}", 1)),
        "status of a Job": patch(jobs, "j", "/status", state={"phase": "Pending"}, minAvailable=1, pending=1),
    }


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
            for what, write in kinds_of_write(api, await new_namespace(api, "writes")).items():
                before = server.cpu_s()
                await each(given.count, write, at_once=64)
                spent.setdefault(what, []).append((server.cpu_s() - before) / given.count * 1000)
    for what, costs in spent.items():
        print(f"{what:<26} {statistics.median(costs):5.2f} ms  ({min(costs):.2f}-{max(costs):.2f})")


if __name__ == "__main__":
    asyncio.run(main())

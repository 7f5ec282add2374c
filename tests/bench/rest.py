#!/usr/bin/env python3
"""Measure what the operator costs when it has nothing to do: `make bench-rest`.

Three figures on a control plane of its own: CPU and memory while many Pods that belong to no Job are made and changed,
requests and CPU over a minute while many Jobs are at rest, and the memory of an operator that starts beside many Pods.
"""

import argparse
import asyncio
import time

from throughput import (
    BATCH,
    CONTAINER,
    Players,
    Process,
    Surroundings,
    count_pods,
    each,
    make_job,
    new_namespace,
    surroundings,
    writes,
)

from vcjob.kube.client import ApiClient
from vcjob.kube.errors import Transient


async def written(api: ApiClient) -> int:
    """Return how many writes there were, but for the API server's own Leases."""
    return sum(count for what, count in (await writes(api)).items() if not what.endswith(" leases"))


async def measure_rest(api: ApiClient, operator: Process, *, jobs: int, seconds: float) -> None:
    """Let Jobs get their Pods, wait until nothing more is written, then look at what is asked for."""
    namespace = await new_namespace(api, "rest")
    players = Players(api, namespace)
    players.admit_groups()
    await each(jobs, lambda n: api.create(f"{BATCH}/namespaces/{namespace}/jobs", make_job(f"j{n}", 1)), at_once=16)
    while await count_pods(api, namespace) < jobs:  # noqa: ASYNC110 - the server is asked, there is no event
        await asyncio.sleep(1)
    before = await written(api)
    while True:  # Events and numbers follow when the API server is quiet
        await asyncio.sleep(5)
        after = await written(api)
        if after == before:
            break
        before = after
    cpu = operator.cpu_s()
    await asyncio.sleep(seconds)
    wrote = await written(api) - before
    players.stop()
    print(
        f"{jobs} Jobs at rest for {seconds:g} s: {wrote} writes, {operator.cpu_s() - cpu:.2f} CPU s, "
        f"{operator.memory_mib('VmRSS')} MiB",
        flush=True,
    )


async def delete_all(api: ApiClient, path: str) -> None:
    """Delete a collection; a server ends a request after a minute, and a slow one has not deleted all by then."""
    while True:
        try:
            await api.request("DELETE", path, params={"gracePeriodSeconds": "0"}, timeout_s=300)
        except Transient:
            continue
        return


async def measure_foreign(api: ApiClient, operator: Process, *, pods: int) -> None:
    """Make, change and delete Pods without a Job's label."""
    namespace = await new_namespace(api, "foreign")
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [CONTAINER]}
    cpu, memory, began = operator.cpu_s(), operator.memory_mib("VmRSS"), time.monotonic()
    await each(pods, lambda n: api.create(path, {"metadata": {"name": f"p{n}"}, "spec": spec}), at_once=32)
    await each(pods, lambda n: api.merge_patch(f"{path}/p{n}/status", {"status": {"phase": "Running"}}), at_once=32)
    took = time.monotonic() - began
    spent, grown = operator.cpu_s() - cpu, operator.memory_mib("VmRSS") - memory
    await delete_all(api, path)
    cpu = operator.cpu_s()
    await asyncio.sleep(took)
    print(
        f"{pods} foreign Pods made and changed in {took:.0f} s: {spent:.2f} CPU s and {grown:+.1f} MiB; "
        f"as long without them: {operator.cpu_s() - cpu:.2f} CPU s",
        flush=True,
    )


async def measure_start(api: ApiClient, around: Surroundings, *, pods: int) -> None:
    """Have one operator make Pods, and see what the next one needs to take them in."""
    namespace = await new_namespace(api, "start")
    async with around.operator():
        players = Players(api, namespace)
        players.admit_groups()
        await api.create(f"{BATCH}/namespaces/{namespace}/jobs", make_job("large", pods))
        while await count_pods(api, namespace) < pods:  # noqa: ASYNC110 - the server is asked, there is no event
            await asyncio.sleep(1)
        players.stop()
    async with around.operator() as operator:
        print(f"started beside {pods} Pods of a Job: {operator.memory_mib('VmHWM')} MiB at the peak", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000, help="Jobs at rest (default 1000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look at them (default 60)")
    parser.add_argument("--pods", type=int, default=20000, help="Pods without a Job (default 20000)")
    parser.add_argument("--own-pods", type=int, default=24000, help="Pods of a Job at the start (default 24000)")
    given = parser.parse_args()
    async with surroundings() as (api, around):
        async with around.operator() as operator:
            await measure_foreign(api, operator, pods=given.pods)
            await measure_rest(api, operator, jobs=given.jobs, seconds=given.seconds)
        await measure_start(api, around, pods=given.own_pods)


if __name__ == "__main__":
    asyncio.run(main())

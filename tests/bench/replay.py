#!/usr/bin/env python3
"""What the API server can do of the operator's own writes: `python tests/bench/replay.py [--runs 3] [--shape 1x1000]`.

As throughput.py, but instead of the operator a client that knows everything beforehand and decides nothing: for each
Job that is submitted, it creates the ConfigMap, the Service, the NetworkPolicy, the PodGroup and the Pods that the
operator would create, with the operator's credentials, 64 requests in flight, and watches the Pods as the operator
does. It waits for no admission, writes no status and reads no event. Its ratio to the raw limit is the most that an
operator which costs nothing could reach.
"""

import argparse
import asyncio
import statistics
import time
from pathlib import Path

from throughput import BATCH, Players, count_pods, each, make_job, new_namespace, raw_limit, surroundings
from writes import kinds_of_write, our_pod, watching

from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.kube.protobuf import PROTOBUF, PROTOBUF_WATCH

FIRST = ("ConfigMap", "Service", "NetworkPolicy", "PodGroup")


async def replay(api: ApiClient, operator: ApiClient, shape: str) -> float:
    """Submit the shape's Jobs, make what belongs to them, and return the Pods made a second."""
    jobs, pods = (int(part) for part in shape.split("x"))
    namespace = await new_namespace(api, "replay")
    path, pod = f"/api/v1/namespaces/{namespace}/pods", our_pod()
    writes, in_flight = kinds_of_write(operator, namespace), asyncio.Semaphore(64)
    players = Players(api, namespace)
    players.admit_groups()
    await asyncio.sleep(0.5)

    async def create(kind: str, number: int) -> None:
        async with in_flight:
            await writes[kind](number)

    async def create_pod(job: int, index: int) -> None:
        async with in_flight:
            metadata = {**pod["metadata"], "name": f"j{job}-t0-{index}"}
            await operator.create(path, {**pod, "metadata": metadata}, accept=PROTOBUF)

    async def follow(job: int) -> None:
        await asyncio.gather(*(create(kind, job) for kind in FIRST))
        await each(pods, lambda index: create_pod(job, index), at_once=64)

    try:
        async with watching(operator, PROTOBUF_WATCH), asyncio.TaskGroup() as group:

            async def submit(number: int) -> None:
                await api.create(f"{BATCH}/namespaces/{namespace}/jobs", make_job(f"j{number}", pods))
                group.create_task(follow(number))

            began = time.monotonic()
            await each(jobs, submit, at_once=16)
            made = 0
            while made < jobs * pods:
                made = await count_pods(api, namespace)
                await asyncio.sleep(0.05)
            rate = jobs * pods / (time.monotonic() - began)
    finally:
        players.stop()
    return rate


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", help="JOBSxPODS; may be repeated (default 1x1000 100x10 500x1)")
    parser.add_argument("--runs", type=int, default=3, help="of each shape (default 3)")
    given = parser.parse_args()
    ratios: dict[str, list[float]] = {}
    for shape in (given.shape or ["1x1000", "100x10", "500x1"]) * given.runs:
        async with surroundings() as (api, around):
            before = await raw_limit(api)
            credentials = load_credentials(kubeconfig=Path(around.vcjob("kubeconfig", "--operator")), context=None)
            async with ApiClient(credentials, user_agent="bench") as operator:
                await asyncio.sleep(2)
                rate = await replay(api, operator, shape)
            ratios.setdefault(shape, []).append(2 * rate / (before + await raw_limit(api)))
    for shape, found in ratios.items():
        print(f"{shape:<10} {statistics.median(found):.3f} of the raw limit  ({min(found):.3f}-{max(found):.3f})")


if __name__ == "__main__":
    asyncio.run(main())

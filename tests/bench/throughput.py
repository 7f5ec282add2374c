#!/usr/bin/env python3
"""Measure the operator on a real API server, beside what that API server can do at all: `make bench`.

For each run, starts a control plane without controllers and an operator with `--gang-scheduler volcano`, as processes
of their own; plays the gang scheduler (every PodGroup becomes Inqueue) and, with --life, the kubelet (Running, then
Succeeded). Before and after the Jobs the raw limit is measured: 1500 Pods created directly, 64 in flight; the ratio is
to the mean of both. Ratios can be compared between machines; rates cannot. The runs go through all shapes in turn, so
that a machine whose speed drifts is unkind to all of them. Prints the median of each shape's runs as a table, or every
run as a JSON line with --json.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.kube.errors import AlreadyExists, ApiError, NotFound

VCJOB = Path(sys.executable).with_name("vcjob")
CONTAINER = {
    "name": "main",
    "image": "busybox:1.36",
    "command": ["sh", "-c", "sleep 3600"],
    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
}
GROUPS = "/apis/scheduling.volcano.sh/v1beta1"
BATCH = "/apis/batch.volcano.sh/v1alpha1"
TICKS = os.sysconf("SC_CLK_TCK")
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def make_job(name: str, pods: int) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    task = {"name": "t0", "replicas": pods, "minAvailable": pods, "template": template}
    spec = {"minAvailable": pods, "schedulerName": "volcano", "plugins": {"env": [], "svc": []}, "tasks": [task]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


class Process:
    """CPU and memory of the operator, as the kernel counts them."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self, key: str) -> float:
        found = re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(), re.M)
        return round(int(found[1]) / 1024, 1) if found else 0.0


async def each(count: int, act: Callable[[int], Awaitable[object]], *, at_once: int) -> None:
    """Act on all numbers below `count`, some at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await act(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def raw_limit(api: ApiClient, count: int = 1500) -> float:
    """Return how many Pods a second the API server takes from a client that does nothing else."""
    namespace = await new_namespace(api, "raw")
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"restartPolicy": "Never", "schedulerName": "volcano", "containers": [CONTAINER]}
    began = time.monotonic()
    await each(count, lambda n: api.create(path, {"metadata": {"name": f"raw-{n}"}, "spec": spec}), at_once=64)
    return count / (time.monotonic() - began)


async def new_namespace(api: ApiClient, prefix: str) -> str:
    name = f"{prefix}-{time.time_ns() // 1000000 % 10**9}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


async def count_pods(api: ApiClient, namespace: str) -> int:
    answer = msgspec.json.decode(await api.get(f"/api/v1/namespaces/{namespace}/pods", params={"limit": "1"}))
    return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount") or 0)


async def watch(api: ApiClient, path: str, take: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    while True:
        try:
            async for lines in api.stream(path, {"watch": "1"}):
                for line in lines:
                    event = msgspec.json.decode(line)
                    if event["type"] in ("ADDED", "MODIFIED"):
                        await take(event["object"])
        except ApiError:
            await asyncio.sleep(0.2)


class Players:
    """Those who act on what the operator makes, as tasks that are ended together."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(16)

    def admit_groups(self) -> None:
        path = f"{GROUPS}/namespaces/{self._namespace}/podgroups"

        async def take(group: dict[str, Any]) -> None:
            if (group.get("status") or {}).get("phase", "") in ("", "Pending"):
                self._start(self._patch(f"{path}/{group['metadata']['name']}", {"status": {"phase": "Inqueue"}}))

        self._start(watch(self._api, path, take))

    def run_pods(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"

        async def take(pod: dict[str, Any]) -> None:
            phase = {"Pending": "Running", "Running": "Succeeded"}.get(pod["status"]["phase"])
            if phase is None or "deletionTimestamp" in pod["metadata"]:
                return
            state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": 0}}
            container = {"name": "main", "image": "x", "imageID": "x", "ready": phase == "Running", "restartCount": 0}
            status = {"phase": phase, "containerStatuses": [{**container, "state": state}]}
            self._start(self._patch(f"{path}/{pod['metadata']['name']}/status", {"status": status}))

        self._start(watch(self._api, path, take))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        async with self._slots:
            try:
                await self._api.merge_patch(path, body)
            except NotFound:
                pass


async def writes(api: ApiClient) -> dict[str, int]:
    """Return the requests that the API server has counted, by verb and resource."""
    text = (await api.get("/metrics")).decode()
    out: dict[str, int] = {}
    for labels, value in re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)", text, re.M):
        found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if found["verb"] in WRITES:
            key = f"{found['verb']} {found['resource']}{'/' + found['subresource'] if found['subresource'] else ''}"
            out[key] = out.get(key, 0) + int(float(value))
    return out


async def measure(api: ApiClient, operator: Process, shape: str, *, life: bool, timeout_s: float) -> dict[str, Any]:
    """Submit the shape's Jobs and return the figures; the operator is one that has done nothing yet."""
    jobs, pods = (int(part) for part in shape.split("x"))
    namespace = await new_namespace(api, "bench")
    players = Players(api, namespace)
    players.admit_groups()
    if life:
        players.run_pods()
    await asyncio.sleep(0.5)
    before, cpu, began = await writes(api), operator.cpu_s(), time.monotonic()
    await each(jobs, lambda n: api.create(f"{BATCH}/namespaces/{namespace}/jobs", make_job(f"j{n}", pods)), at_once=16)
    seen, total = 0, jobs * pods
    while seen < total and time.monotonic() - began < timeout_s:
        seen = await count_pods(api, namespace)
        await asyncio.sleep(0.05)
    seconds = time.monotonic() - began
    figures: dict[str, Any] = {"shape": shape, "life": life, "pods": seen, "seconds": round(seconds, 2)}
    if life:
        figures["completed_s"] = await wait_completed(api, namespace, jobs, began, timeout_s)
    await asyncio.sleep(2)
    spent, after = operator.cpu_s() - cpu, await writes(api)
    players.stop()
    updates = after.get("PUT jobs/status", 0) - before.get("PUT jobs/status", 0)
    figures |= {
        "pods_per_s": round(seen / seconds, 1),
        "cpu_per_1000": round(spent / max(seen, 1) * 1000, 2),
        "peak_mib": operator.memory_mib("VmHWM"),
        "status_writes_per_job": round(updates / jobs, 1),
    }
    return figures


async def wait_completed(api: ApiClient, namespace: str, jobs: int, began: float, timeout_s: float) -> float:
    while time.monotonic() - began < timeout_s:
        answer = msgspec.json.decode(await api.get(f"{BATCH}/namespaces/{namespace}/jobs"))
        phases = [job.get("status", {}).get("state", {}).get("phase") for job in answer["items"]]
        if phases.count("Completed") == jobs:
            break
        await asyncio.sleep(0.25)
    return round(time.monotonic() - began, 2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Surroundings:
    """A control plane of its own, and operators for it."""

    def __init__(self, home: str) -> None:
        self._env = os.environ | {"VCJOB_CLUSTER_HOME": home}

    def vcjob(self, *words: str) -> str:
        """Run a `vcjob cluster` command and return what it says."""
        command = [VCJOB, "cluster", *words, "--name", "bench"]
        return subprocess.run(command, env=self._env, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Process]:
        """A new operator that is ready, and is gone at the end."""
        health = f"127.0.0.1:{free_port()}"
        command = [VCJOB, "operator", "--kubeconfig", self.vcjob("kubeconfig", "--operator"), "--no-leader-elect"]
        command += ["--gang-scheduler", "volcano", "--log-level", "error"]
        command += ["--health-bind-address", health, "--metrics-bind-address", "0"]
        process = await asyncio.create_subprocess_exec(*command, env=self._env)
        try:
            await wait_ready(health)
            yield Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


@asynccontextmanager
async def surroundings() -> AsyncIterator[tuple[ApiClient, Surroundings]]:
    """A client of a new control plane, and what starts operators for it; all is gone at the end."""
    with tempfile.TemporaryDirectory() as home:
        around = Surroundings(home)
        around.vcjob("up", "--no-controllers")
        try:
            credentials = load_credentials(kubeconfig=Path(around.vcjob("kubeconfig")), context=None)
            async with ApiClient(credentials, user_agent="bench") as api:
                await make_queue(api)
                yield api, around
        finally:
            around.vcjob("down")


async def make_queue(api: ApiClient) -> None:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    try:
        await api.create(f"{GROUPS}/queues", kind | {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    except AlreadyExists:
        pass


async def wait_ready(health: str, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline:
            try:
                async with session.get(f"http://{health}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit("the operator did not become ready")


COLUMNS = ("pods_per_s", "raw_per_s", "ratio", "cpu_per_1000", "peak_mib", "status_writes_per_job", "completed_s")
HEADINGS = (
    "Pods/s",
    "raw limit",
    "ratio",
    "CPU s per 1000 Pods",
    "peak MiB",
    "status writes a Job",
    "all Completed, s",
)


def print_medians(runs: list[dict[str, Any]]) -> None:
    """Print the median of each shape's runs as a Markdown table; ratios with the least and the greatest."""
    print("| shape | " + " | ".join(HEADINGS) + " |")
    print("|---" * (len(HEADINGS) + 1) + "|")
    for shape in dict.fromkeys(run["shape"] for run in runs):
        mine = [run for run in runs if run["shape"] == shape]
        cells = [f"{shape}, whole life" if mine[0]["life"] else shape]
        for name in COLUMNS:
            values = sorted(run[name] for run in mine if name in run)
            text = f"{statistics.median(values):g}" if values else "-"
            if name == "ratio" and len(values) > 1:
                text += f" ({values[0]:g}-{values[-1]:g})"
            cells.append(text)
        print(f"| {' | '.join(cells)} |")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", help="JOBSxPODS; may be repeated (default 1x1000 100x10 500x1)")
    parser.add_argument("--life", action="store_true", help="play the kubelet too, until every Job is Completed")
    parser.add_argument("--runs", type=int, default=3, help="of each shape (default 3)")
    parser.add_argument("--json", action="store_true", help="a JSON line for every run instead of a table of medians")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run (default 900)")
    given = parser.parse_args()
    done: list[dict[str, Any]] = []
    for shape in (given.shape or ["1x1000", "100x10", "500x1"]) * given.runs:
        async with surroundings() as (api, around):
            before = await raw_limit(api)
            async with around.operator() as operator:
                await asyncio.sleep(2)
                figures = await measure(api, operator, shape, life=given.life, timeout_s=given.timeout)
            figures["raw_per_s"] = round((before + await raw_limit(api)) / 2, 1)
        figures["ratio"] = round(figures["pods_per_s"] / figures["raw_per_s"], 3)
        done.append(figures)
        if given.json:
            print(json.dumps(figures), flush=True)
        else:
            print(f"{shape}: {figures['pods_per_s']} Pods/s, ratio {figures['ratio']}", file=sys.stderr, flush=True)
    if not given.json:
        print_medians(done)


if __name__ == "__main__":
    asyncio.run(main())

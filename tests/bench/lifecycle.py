#!/usr/bin/env python3
"""CPU that the pure core costs: compiling a Job, rendering a Pod, planning a pass.

    python tests/bench/lifecycle.py [--repeat 200]

No cluster is involved; each figure is the best of five rounds, as timeit advises.
"""

import argparse
import timeit
from collections.abc import Callable
from typing import Any

import msgspec
from google.protobuf.json_format import ParseDict
from throughput import make_job

from vcjob.api.job import Phase
from vcjob.controller.decode_pods import POD_MESSAGES, decode_pod_message
from vcjob.gang.none import NoGang
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.revision import compile_job
from vcjob.lifecycle.snapshot import Snapshot
from vcjob.lifecycle.status import Status

GANG = NoGang(gang_scheduler_name="volcano")
NOW = 1_800_000_000.0


def running_job(pods: int) -> tuple[dict[str, Any], Snapshot]:
    """Return a raw Job, and what a pass over it looks at when all its Pods run."""
    raw = make_job("j", pods)
    raw["metadata"] |= {"namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 1}
    revision = compile_job(raw)
    renderer = PodRenderer(revision, gang=GANG, version=0, retry_count=0)
    found = {}
    for index in range(pods):
        manifest = dict(renderer.render(Member(task="t0", index=index)).manifest)
        manifest["metadata"] = {**manifest["metadata"], "uid": f"u{index}", "resourceVersion": "1"}
        raw_pod = msgspec.json.decode(msgspec.json.encode({**manifest, "status": {"phase": "Running"}}))
        message = ParseDict(raw_pod, POD_MESSAGES["Pod"](), ignore_unknown_fields=True)
        pod = decode_pod_message(message.SerializeToString())
        found[pod.name] = pod
    status = Status(phase=Phase.RUNNING, min_available=pods, running=pods)
    return raw, Snapshot(revision=revision, status=status, pods=found, gang=GANG, now=NOW, created=NOW)


def tell(what: str, act: Callable[[], object], *, repeat: int) -> None:
    best = min(timeit.repeat(act, number=repeat, repeat=5)) / repeat
    print(f"{what:<44} {best * 1e6:9.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=200)
    given = parser.parse_args()
    encode = msgspec.json.Encoder().encode
    for pods in (10, 1000):
        raw, snapshot = running_job(pods)
        tell(f"compile a Job of {pods} Pods", lambda raw=raw: compile_job(raw), repeat=given.repeat)
        tell(f"plan a pass over {pods} running Pods", lambda it=snapshot: plan(it), repeat=given.repeat)
    renderer = PodRenderer(snapshot.revision, gang=GANG, version=0, retry_count=0)
    member = Member(task="t0", index=7)
    tell(
        "render and encode a Pod with env and svc",
        lambda: encode(renderer.render(member).manifest),
        repeat=given.repeat,
    )


if __name__ == "__main__":
    main()

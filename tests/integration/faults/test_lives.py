"""Every life ends the same, whatever happens on the way between the operator and the API server."""

import asyncio
from collections.abc import Callable

import pytest
from tests.integration.conftest import StartOperator
from tests.integration.faults.lives import PODS, created_pods, live
from tests.integration.faults.proxy import (
    CutAnswer,
    Expire,
    FaultProxy,
    LoseAnswer,
    Refuse,
    Rule,
    Say,
    Slow,
    Swallow,
)
from tests.integration.harness.api import Api
from tests.integration.harness.control_plane import ControlPlane

WRITES = ("POST", "PATCH", "PUT", "DELETE")
READS = ("GET", "LIST")
PAGE = b"<html><body>please log in</body></html>\n"

Inject = Callable[[FaultProxy], list[Rule]]


FAULTS: dict[str, Inject] = {
    "nothing wrong": lambda proxy: [],
    "429 without Retry-After": lambda proxy: [
        proxy.inject(Refuse(code=429, reason="TooManyRequests"), *WRITES, *READS, "WATCH", share=0.3)
    ],
    "429 with Retry-After": lambda proxy: [
        proxy.inject(
            Refuse(code=429, reason="TooManyRequests", retry_after="1"), *WRITES, *READS, "WATCH", share=0.15, times=12
        )
    ],
    "429 with a date in Retry-After": lambda proxy: [
        proxy.inject(
            Refuse(code=429, retry_after="Wed, 21 Oct 2065 07:28:00 GMT"), *WRITES, *READS, "WATCH", share=0.3, times=12
        )
    ],
    "429 with hours in Retry-After, on the way of a load balancer": lambda proxy: [
        proxy.inject(Refuse(code=429, retry_after="7200"), "LIST", "WATCH", share=0.5, times=2)
    ],
    "500": lambda proxy: [proxy.inject(Refuse(code=500, reason="InternalError"), *WRITES, *READS, "WATCH", share=0.3)],
    "503": lambda proxy: [
        proxy.inject(Refuse(code=503, reason="ServiceUnavailable"), *WRITES, *READS, "WATCH", share=0.3)
    ],
    "slow answers": lambda proxy: [proxy.inject(Slow(seconds=0.5), *WRITES, *READS, share=0.5)],
    "requests that get lost": lambda proxy: [proxy.inject(Swallow(), *WRITES, *READS, share=0.3)],
    "answers lost after the write took effect": lambda proxy: [proxy.inject(LoseAnswer(), *WRITES, share=0.5)],
    "answers cut in the middle": lambda proxy: [proxy.inject(CutAnswer(after=200), *WRITES, *READS, share=0.3)],
    "watches cut in the middle": lambda proxy: [proxy.inject(CutAnswer(after=5000), "WATCH", share=0.7)],
    "410 on watches": lambda proxy: [
        proxy.inject(Expire(), "WATCH", share=0.4),
        proxy.inject(CutAnswer(after=5000), "WATCH", share=0.7),
    ],
    "410 as the code of watches": lambda proxy: [
        proxy.inject(Refuse(code=410, reason="Expired"), "WATCH", share=0.4),
        proxy.inject(CutAnswer(after=5000), "WATCH", share=0.7),
    ],
    "errors in the middle of watches": lambda proxy: [
        proxy.inject(Expire(code=500, reason="InternalError"), "WATCH", share=0.4),
        proxy.inject(CutAnswer(after=5000), "WATCH", share=0.7),
    ],
    "pages of others instead of answers": lambda proxy: [
        proxy.inject(Say(body=PAGE, content_type="text/html"), *WRITES, *READS, "WATCH", share=0.2),
        proxy.inject(Say(body=PAGE), *WRITES, *READS, "WATCH", share=0.1),
        proxy.inject(CutAnswer(after=5000), "WATCH", share=0.5),
    ],
    "null instead of answers": lambda proxy: [
        proxy.inject(Say(body=b"null\n"), *WRITES, *READS, "WATCH", share=0.3),
        proxy.inject(CutAnswer(after=5000), "WATCH", share=0.5),
    ],
    "conflicting writes of the status": lambda proxy: [
        proxy.inject(Refuse(code=409, reason="Conflict"), "PUT", path="/status", share=0.5)
    ],
    "401": lambda proxy: [proxy.inject(Refuse(code=401, reason="Unauthorized"), *WRITES, *READS, "WATCH", share=0.2)],
    "409 on everything": lambda proxy: [
        proxy.inject(Refuse(code=409, reason="Conflict"), "POST", "PATCH", "PUT", share=0.3)
    ],
}


@pytest.mark.parametrize("inject", FAULTS.values(), ids=FAULTS.keys())
async def test_lives_end_as_without_faults(
    inject: Inject,
    proxy: FaultProxy,
    operator: StartOperator,
    api: Api,
    namespace: str,
    control_plane: ControlPlane,
):
    mark = control_plane.audit.mark()
    rules = inject(proxy)
    process = await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig, ready=False)
    await live(api, namespace)
    assert all(rule.met for rule in rules), "the fault did not matter"
    assert process.running
    assert created_pods(control_plane, mark, namespace) == PODS
    log = await asyncio.to_thread(process.last_lines, 2000)
    assert "failed unexpectedly" not in log
    assert "Traceback" not in log

"""How the operator starts, what it says when it cannot, and how it ends."""

import asyncio
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import StartOperator
from tests.integration.harness.api import JOBS, PODS, Api, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import in_phase, job, pods_of, pods_when, task
from tests.integration.harness.operator import VCJOB, OperatorProcess, free_port

STOP_S = 5.0


async def end(process: OperatorProcess) -> tuple[int, float]:
    """Stop the operator as Kubernetes does; return its exit code and the seconds it took."""
    began = time.monotonic()
    code = await process.stop()
    return code, time.monotonic() - began


async def run(*arguments: str, **env: str) -> tuple[int, str]:
    """Run `vcjob operator`, which is to end by itself; return its exit code and what it said."""
    clean = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    process = await asyncio.create_subprocess_exec(
        VCJOB,
        "operator",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=clean | env,
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


# Stopping


async def test_sigterm_ends_it_within_5_s_and_with_0(operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace)
    await api.create(JOBS, job("j", task("w", 2)), namespace)
    await pods_when(api, "j", namespace, count=2)
    code, took = await end(process)
    assert code == 0
    assert took < STOP_S
    assert "Traceback" not in process.last_lines(200)


async def test_sigterm_ends_it_while_500_pods_are_being_made(operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace)
    body = job("many", task("w", 500, pod={"schedulerName": "nobody"}), plugins={"svc": [], "env": []})
    await api.create(JOBS, body, namespace)

    async def has_begun() -> bool:
        return len(await pods_of(api, "many", namespace)) > 20

    await eventually(has_begun, every_s=0.01)
    code, took = await end(process)
    assert code == 0
    assert took < STOP_S
    assert "Traceback" not in process.last_lines(200)
    made = len(await pods_of(api, "many", namespace))
    assert made < 500, "it was to be stopped half-way"

    await process.start()
    pods = await pods_when(api, "many", namespace, count=500, timeout_s=60)
    assert {pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] for pod in pods.values()} == {"0"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_at_any_moment_of_its_start(
    number: signal.Signals, operator: StartOperator, namespace: str
):
    process = await operator("--namespace", namespace, ready=False)
    assert process.process is not None

    async def listens() -> bool:
        try:
            await process.get(f"{process.health_url}/livez")
        except OSError:
            return False
        return True

    await eventually(listens, every_s=0.005, timeout_s=60)
    process.process.send_signal(number)
    async with asyncio.timeout(STOP_S * 3):  # that it hangs is the fear here
        assert await process.process.wait() == 0
    assert "Traceback" not in process.last_lines(200)


# A server that is not there


async def test_an_unreachable_server_is_waited_for_and_named(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    port = free_port()
    kubeconfig = redirected(control_plane.operator_kubeconfig, tmp_path, server=f"https://127.0.0.1:{port}")
    process = await operator("--namespace", namespace, kubeconfig=kubeconfig, ready=False)
    page = await readyz_with(process, "kinds", "cannot connect")
    assert f"127.0.0.1:{port}" in page
    assert (await process.get(f"{process.health_url}/livez"))[0] == 200  # a restart would not help
    assert f"127.0.0.1:{port}" in process.last_lines()
    code, took = await end(process)
    assert (code, took < STOP_S) == (0, True)
    assert "Traceback" not in process.last_lines(200)


async def test_a_server_that_does_not_answer_is_named(
    operator: StartOperator, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        kubeconfig = redirected(control_plane.operator_kubeconfig, tmp_path, server=server)
        process = await operator("--namespace", namespace, kubeconfig=kubeconfig, ready=False)
        page = await readyz_with(process, "kinds", "no answer")
        assert "TimeoutError" not in page
        code, took = await end(process)
        assert (code, took < STOP_S) == (0, True)


# Wrong words


async def test_what_cannot_be_is_one_clear_line(control_plane: ControlPlane, tmp_path: Path):
    good = str(control_plane.operator_kubeconfig)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cases = {
            ("--kubeconfig", str(tmp_path / "none")): "none does not exist",
            ("--kubeconfig", good, "--context", "there-is-none"): "contexts has no 'there-is-none'",
            ("--kubeconfig", good, "--health-bind-address", address): f"cannot listen: {address}",
        }
        for arguments, words in cases.items():
            code, said = await run(*arguments)
            assert (code, words in said) == (1, True), said
            assert said.startswith("Error: ") and said.count("\n") == 1, said


async def test_options_are_read_from_the_environment(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    env = {"VCJOB_NAMESPACE": f"{namespace} default", "VCJOB_SCHEDULER_NAME": "mine", "VCJOB_LOG_FORMAT": "json"}
    process = await operator(env=env)
    body = job("j", task("w", 1, pod={"schedulerName": "mine"}), task("v", 1, pod={"schedulerName": "other"}))
    await api.create(JOBS, body, namespace)
    pods = await pods_when(api, "j", namespace, count=2)
    assert [pod["spec"]["schedulerName"] for _, pod in sorted(pods.items())] == ["other", "default-scheduler"]
    assert await process.stop() == 0
    lines = [json.loads(line) for line in process.log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)


async def test_only_the_namespaces_that_are_named_are_looked_at(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    process = await operator("--namespace", namespace, "--namespace", "default")
    name = f"only-{namespace}"
    await api.create(JOBS, job(name, task("w")), "kube-public")
    for place in (namespace, "default"):
        await api.create(JOBS, job(name, task("w")), place)
    for place in (namespace, "default"):
        await pods_when(api, name, place, count=1)
        await in_phase(api, name, place, "Pending")
    await asyncio.sleep(0.5)
    assert await api.list(PODS, "kube-public") == []
    assert "status" not in await api.get(JOBS, name, "kube-public")
    await process.kill()
    for place in ("kube-public", "default"):
        await api.delete(JOBS, name, place)


async def readyz_with(process: OperatorProcess, check: str, words: str, *, timeout_s: float = 60.0) -> str:
    """Return the page of /readyz once it says 503 and the words behind the check's name."""

    async def look() -> str:
        try:
            status, page = await process.get(f"{process.health_url}/readyz")
        except OSError:
            return ""
        line = next((line for line in page.splitlines() if line.startswith(f"[-]{check}:")), "")
        assert status == 503 and words in line, page
        return page

    return await eventually(look, timeout_s=timeout_s, what=f"{words!r} on /readyz")


def redirected(kubeconfig: Path, folder: Path, *, server: str) -> Path:
    """Return a copy of a kubeconfig that leads elsewhere."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = server
    path = folder / "elsewhere.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path

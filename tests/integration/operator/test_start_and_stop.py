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

    await eventually(listens, every_s=0.005)
    process.process.send_signal(number)
    async with asyncio.timeout(STOP_S):
        assert await process.process.wait() == 0
    assert "Traceback" not in process.last_lines(200)


# A server that is not there


async def test_an_unreachable_server_is_waited_for_and_named(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    port = free_port()
    kubeconfig = redirected(control_plane.operator_kubeconfig, tmp_path, server=f"https://127.0.0.1:{port}")
    process = await operator("--namespace", namespace, kubeconfig=kubeconfig, ready=False)
    page = await readyz_with(process, "kinds", "Cannot connect")
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


async def test_a_bad_kubeconfig_is_one_clear_line(control_plane: ControlPlane, tmp_path: Path):
    good = control_plane.operator_kubeconfig
    config = yaml.safe_load(good.read_text())
    broken = tmp_path / "broken"
    broken.write_text("{not yaml")
    no_user = tmp_path / "no-user"
    no_user.write_text(yaml.safe_dump(config | {"users": []}))
    bad_ca = tmp_path / "bad-ca"
    cluster = config["clusters"][0] | {"cluster": {"server": "https://x", "certificate-authority-data": "bm8="}}
    bad_ca.write_text(yaml.safe_dump(config | {"clusters": [cluster]}))
    cases = {
        ("--kubeconfig", str(tmp_path / "none")): "none does not exist",
        ("--kubeconfig", str(tmp_path)): "is a directory",
        ("--kubeconfig", str(broken)): "is not YAML",
        ("--kubeconfig", str(no_user)): "users has no",
        ("--kubeconfig", str(bad_ca)): "certificate authority is not PEM",
        ("--kubeconfig", str(good), "--context", "there-is-none"): "contexts has no 'there-is-none'",
    }
    answers = await asyncio.gather(*(run(*arguments) for arguments in cases))
    for (arguments, words), (code, said) in zip(cases.items(), answers, strict=True):
        assert words in said, arguments
        assert "Traceback" not in said, arguments
        assert code in (1, 2), arguments
        assert said.count("Error:") == 1, said


async def test_wrong_values_are_named(control_plane: ControlPlane):
    config = ("--kubeconfig", str(control_plane.operator_kubeconfig))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        cases = {
            ("--gang-scheduler", "kueue"): ("'kueue' is not one of 'none', 'volcano'", 2),
            ("--log-level", "loud"): ("'loud' is not one of", 2),
            ("--log-format", "xml"): ("'xml' is not one of", 2),
            ("--health-bind-address", "nowhere"): ("'nowhere' is no bind address", 2),
            ("--metrics-bind-address", ":99999"): ("':99999' is no bind address", 2),
            ("--namespace", "Not/AName"): ("'Not/AName' is no namespace", 2),
            ("--namespace", ""): ("is no namespace", 2),
            ("--leader-elect-namespace", "a b"): ("'a b' is no namespace", 2),
            ("--no-such-flag",): ("No such option", 2),
            (*config, "--health-bind-address", f"127.0.0.1:{port}"): (f"127.0.0.1:{port}", 1),
            (*config, "--health-bind-address", "no.such.host.invalid:80"): ("no.such.host.invalid", 1),
        }
        answers = await asyncio.gather(*(run(*arguments) for arguments in cases))
    for (arguments, (words, code)), (got, said) in zip(cases.items(), answers, strict=True):
        assert words in said, arguments
        assert "Traceback" not in said, arguments
        assert got == code, arguments


async def test_every_option_is_read_from_the_environment(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    answers = await asyncio.gather(
        run(VCJOB_KUBECONFIG="/does/not/exist"),
        run(VCJOB_KUBECONFIG=str(control_plane.operator_kubeconfig), VCJOB_CONTEXT="there-is-none"),
        run(VCJOB_GANG_SCHEDULER="kueue"),
        run(VCJOB_LEADER_ELECT="perhaps"),
        run(VCJOB_HEALTH_BIND_ADDRESS="nowhere"),
        run(VCJOB_METRICS_BIND_ADDRESS="nowhere"),
        run(VCJOB_LOG_LEVEL="loud"),
        run(VCJOB_LOG_FORMAT="xml"),
        run(VCJOB_LEADER_ELECT_NAMESPACE="a b"),
    )
    assert all(code in (1, 2) for code, _ in answers), answers
    names = ("/does/not/exist", "there-is-none", "kueue", "perhaps", "nowhere", "nowhere", "loud", "xml", "a b")
    assert all(name in said for name, (_, said) in zip(names, answers, strict=True)), answers

    env = {"VCJOB_NAMESPACE": f"{namespace} default", "VCJOB_SCHEDULER_NAME": "mine", "VCJOB_LOG_FORMAT": "json"}
    process = await operator(env=env)
    body = job("j", task("w", 1, pod={"schedulerName": "mine"}), task("v", 1, pod={"schedulerName": "other"}))
    await api.create(JOBS, body, namespace)
    pods = await pods_when(api, "j", namespace, count=2)
    assert [pod["spec"]["schedulerName"] for _, pod in sorted(pods.items())] == ["other", "default-scheduler"]
    lines = [json.loads(line) for line in process.log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert await process.stop() == 0
    [json.loads(line) for line in process.log.read_text().splitlines()]


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


async def readyz_with(process: OperatorProcess, check: str, words: str, *, timeout_s: float = 25.0) -> str:
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

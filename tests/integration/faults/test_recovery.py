"""What heals, and what ends the process so that the next one heals it."""

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.faults.lives import PATIENCE_S, PODS, created_pods, ends, live, new_pods, uids
from tests.integration.faults.proxy import Expire, FaultProxy, Slow, Stale
from tests.integration.harness.api import JOBS, SECRETS, Api, Refused, eventually
from tests.integration.harness.control_plane import ControlPlane, run_cluster_command, running_cluster
from tests.integration.harness.jobs import ask, in_phase, job, play, task

from vcjob.cluster.processes import is_alive
from vcjob.cluster.record import read_record

PODS_PATH = "/api/v1/namespaces/{}/pods"
RESTARTS = {"event": "PodFailed", "action": "RestartJob"}


async def test_watches_that_fall_silent_are_replaced_within_a_minute(
    proxy: FaultProxy, operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    mark = control_plane.audit.mark()
    process = await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig)
    await eventually(lambda: len(proxy.watches) == 3, what="the watches of Pods, Jobs and Commands")
    proxy.hush()
    await live(api, namespace)
    assert process.running
    assert created_pods(control_plane, mark, namespace) == PODS
    assert (await process.get(f"{process.health_url}/livez"))[0] == 200


async def test_a_watch_of_jobs_that_fails_on_the_servers_side_is_begun_anew(
    proxy: FaultProxy, operator: StartOperator, api: Api, namespace: str
):
    process = await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig)
    rule = proxy.inject(Expire(code=500, reason="InternalError"), "WATCH", path="/jobs", times=3)
    proxy.cut()
    await live(api, namespace)
    await eventually(lambda: rule.met == 3, what="all three failures")
    assert process.running
    assert "the watch has failed: " in process.last_lines()


async def test_stale_lists_repeat_no_decision(
    proxy: FaultProxy, operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane
):
    mark = control_plane.audit.mark()
    process = await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig)
    await api.create(JOBS, job("j", task("w", 2), policies=[RESTARTS]), namespace)
    first = await new_pods(api, "j", namespace, count=2)
    await play(api, first, "Running")
    await in_phase(api, "j", namespace, "Running", timeout_s=PATIENCE_S)
    await play(api, first[:1], "Failed")
    before = (await api.call("GET", PODS_PATH.format(namespace)))["metadata"]["resourceVersion"]
    second = await new_pods(api, "j", namespace, count=2, besides=uids(first))
    await play(api, second, "Running")
    await in_phase(api, "j", namespace, "Running", timeout_s=PATIENCE_S)

    await process.kill()
    # The lists are of the moment when the first Pod had failed; what came after it is told late.
    stale = proxy.inject(Stale(version=before), "LIST", times=8)
    proxy.inject(Slow(seconds=2), "WATCH", times=3)
    await process.start()
    assert stale.met
    await ends(api, "j", namespace, pods=second, retries=1)
    assert created_pods(control_plane, mark, namespace) == 4


async def test_a_token_is_rotated(
    operator: StartOperator, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    config = yaml.safe_load(await asyncio.to_thread(control_plane.operator_kubeconfig.read_text))
    config["users"][0]["user"] = {"tokenFile": "token"}
    kubeconfig, token = tmp_path / "kubeconfig", tmp_path / "token"
    kubeconfig.write_text(yaml.safe_dump(config))
    token.write_text(await make_token(api, "first"))
    process = await operator("--namespace", namespace, kubeconfig=kubeconfig)
    await api.create(JOBS, job("before", task("w", 2)), namespace)
    await play(api, await new_pods(api, "before", namespace, count=2), "Running")
    await in_phase(api, "before", namespace, "Running")

    # The old one is revoked before the new one is there: for a while nothing works.
    await api.delete(SECRETS, "first", "vcjob-system")
    async with Api.connected(as_inline(kubeconfig, token)) as with_old:
        await eventually(lambda: is_refused(with_old), timeout_s=60, every_s=0.5)
    await api.create(JOBS, job("between", task("w", 1)), namespace)
    await eventually(lambda: says_unauthorized(process), timeout_s=60)
    token.write_text(await make_token(api, "second"))
    await new_pods(api, "between", namespace, count=1)
    await live(api, namespace)
    await api.delete(SECRETS, "second", "vcjob-system")


async def test_the_servers_authority_is_rotated(proxy: FaultProxy, operator: StartOperator, api: Api, namespace: str):
    process = await operator("--namespace", namespace, kubeconfig=proxy.kubeconfig)
    await asyncio.to_thread(proxy.renew_identity)
    proxy.cut()
    await live(api, namespace)
    assert process.running
    assert "authorities renewed" in await asyncio.to_thread(process.last_lines, 2000)


async def test_the_api_server_is_killed_and_comes_back(operator: StartOperator, tmp_path: Path):
    with running_cluster("fragile", home=tmp_path, flags=("--audit-log",)) as plane:
        async with Api.connected(plane.admin_kubeconfig) as api:
            await make_namespace(api, name="ns")
            process = await operator("--namespace", "ns", kubeconfig=plane.operator_kubeconfig)
            mark = plane.audit.mark()
            await api.create(JOBS, job("j", task("w", 2), policies=[RESTARTS]), "ns")
            await api.create(JOBS, job("aborted", task("w", 2)), "ns")
            pods, others = [await new_pods(api, name, "ns", count=2) for name in ("j", "aborted")]
            await play(api, [*pods, *others], "Running")
            await in_phase(api, "j", "ns", "Running", timeout_s=PATIENCE_S)

            await asyncio.to_thread(kill, plane, "kube-apiserver")
            done = await asyncio.to_thread(run_cluster_command, "up", "--name", plane.name, home=tmp_path)
            assert done.returncode == 0, done.stderr

        async with Api.connected(plane.admin_kubeconfig) as api:
            await play(api, pods[:1], "Failed")
            await ask(api, "AbortJob", "aborted", "ns")
            renewed = await new_pods(api, "j", "ns", count=2, besides=uids(pods))
            await ends(api, "j", "ns", pods=renewed, retries=1)
            await in_phase(api, "aborted", "ns", "Aborted", timeout_s=PATIENCE_S)
            assert process.running
            assert created_pods(plane, mark, "ns") == 6


@pytest.mark.parametrize("election", ["--leader-elect", "--no-leader-elect"])
async def test_a_restored_etcd_ends_the_process_for_the_next_one_to_see_what_is(
    operator: StartOperator, tmp_path: Path, election: str
):
    with running_cluster("restored", home=tmp_path) as plane:
        data, backup = plane.folder / "etcd", tmp_path / "backup"
        async with Api.connected(plane.admin_kubeconfig) as api:
            await make_namespace(api, name="ns")
            flags = ("--namespace", "ns", election, "--leader-elect-namespace", "vcjob-system")
            process = await operator(*flags, kubeconfig=plane.operator_kubeconfig)
            await api.create(JOBS, job("kept", task("w", 2)), "ns")
            kept = await new_pods(api, "kept", "ns", count=2)
            await asyncio.to_thread(exchange, plane, data, backup)

        async with Api.connected(plane.admin_kubeconfig) as api:
            await play(api, kept, "Running")
            await in_phase(api, "kept", "ns", "Running", timeout_s=PATIENCE_S)
            await api.create(JOBS, job("lost", task("w", 100)), "ns")
            await new_pods(api, "lost", "ns", count=100)
            await asyncio.to_thread(exchange, plane, backup, data)

        await eventually(lambda: not process.running, timeout_s=PATIENCE_S, what="the end of the process")
        assert process.process is not None
        assert process.process.returncode == 1
        assert "went back" in process.last_lines()
        await process.start()
        async with Api.connected(plane.admin_kubeconfig) as api:
            assert await api.find(JOBS, "lost", "ns") is None
            await play(api, kept, "Running")
            await in_phase(api, "kept", "ns", "Running", timeout_s=PATIENCE_S)
            await live(api, "ns")


def exchange(plane: ControlPlane, source: Path, target: Path) -> None:
    """End etcd and the API server, copy one folder of data to another's place, and bring the cluster up again."""
    for name in ("kube-apiserver", "etcd"):
        kill(plane, name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    done = run_cluster_command("up", "--name", plane.name, home=plane.home)
    assert done.returncode == 0, done.stderr


def kill(plane: ControlPlane, name: str) -> None:
    record = read_record(plane.folder / "cluster.json")
    assert record is not None
    (process,) = (component.process for component in record.components if component.name == name)
    os.kill(process.pid, signal.SIGKILL)
    while is_alive(process):
        time.sleep(0.05)


async def make_token(api: Api, secret: str) -> str:
    """Return a token of the operator that is good for as long as a Secret exists."""
    made = await api.create(SECRETS, {"metadata": {"name": secret}}, "vcjob-system")
    bound = {"apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"]}
    answer = await api.call(
        "POST",
        "/api/v1/namespaces/vcjob-system/serviceaccounts/vcjob-operator/token",
        body={"spec": {"boundObjectRef": bound, "expirationSeconds": 3600}},
    )
    token: str = answer["status"]["token"]
    return token


def as_inline(kubeconfig: Path, token: Path) -> Path:
    """Return a copy of a kubeconfig with the token itself in it."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.read_text()}
    made = kubeconfig.with_name("inline")
    made.write_text(yaml.safe_dump(config))
    return made


async def is_refused(api: Api) -> bool:
    try:
        await api.call("GET", "/apis/batch.volcano.sh/v1alpha1")
    except Refused as refused:
        return refused.code == 401
    return False


async def says_unauthorized(process: Any) -> bool:
    status, page = await process.get(f"{process.health_url}/readyz")
    return status == 503 and "nauthorized" in page

"""`vcjob cluster` as its users meet it: up, down, status and kubeconfig, on real processes.

What an interrupted `up` leaves behind is in test_interrupted.py, what fake nodes do in test_fake_nodes.py.
"""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.harness.api import CONFIG_MAPS, CRDS, NODES, PODS, SERVICE_ACCOUNTS, Api, Refused, eventually
from tests.integration.harness.control_plane import VCJOB, ControlPlane, run_cluster_command, running_cluster

from vcjob.cluster.processes import is_alive
from vcjob.cluster.record import Record, read_record


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A cluster that a test may break."""
    with running_cluster("own", home=tmp_path, flags=("--no-crds",)) as plane:
        yield plane


def record_of(plane: ControlPlane) -> Record:
    record = read_record(plane.folder / "cluster.json")
    assert record is not None
    return record


def test_a_second_up_changes_nothing_and_says_so(control_plane: ControlPlane):
    before = record_of(control_plane)
    done = run_cluster_command("up", "--name", control_plane.name, home=control_plane.home)
    assert done.returncode == 0
    assert "runs already" in done.stdout
    assert record_of(control_plane) == before


def test_status_names_every_component_and_ends_with_0(control_plane: ControlPlane):
    done = run_cluster_command("status", "--name", control_plane.name, home=control_plane.home)
    assert done.returncode == 0
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert f"{name} " in done.stdout
    assert "ended" not in done.stdout


def test_kubeconfig_prints_nothing_but_the_path(control_plane: ControlPlane):
    for flags, path in (((), control_plane.admin_kubeconfig), (("--operator",), control_plane.operator_kubeconfig)):
        done = run_cluster_command("kubeconfig", "--name", control_plane.name, *flags, home=control_plane.home)
        assert done.stdout == f"{path}\n"


def test_what_holds_keys_is_for_its_owner_only(control_plane: ControlPlane):
    assert stat.S_IMODE(control_plane.folder.stat().st_mode) == 0o700
    for secret in (control_plane.admin_kubeconfig, control_plane.operator_kubeconfig):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_everything_listens_on_loopback_only(control_plane: ControlPlane):
    inodes = {inode for c in record_of(control_plane).components for inode in socket_inodes(c.process.pid)}
    addresses = {address for address, inode in listening_sockets() if inode in inodes}
    assert addresses == {"0100007F"}  # 127.0.0.1, as the kernel writes it


async def test_the_operator_may_do_what_it_must_and_no_more(control_plane: ControlPlane):
    async with Api.connected(control_plane.operator_kubeconfig) as as_operator:
        assert isinstance(await as_operator.list(PODS), list)
        with pytest.raises(Refused, match="nodes is forbidden") as refused:
            await as_operator.list(NODES)
        assert refused.value.code == 403


async def test_the_audit_log_tells_users_apart(control_plane: ControlPlane, api: Api, namespace: str):
    mark = control_plane.audit.mark()
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}}
    await api.create(CONFIG_MAPS, config_map, namespace)
    calls = await eventually(
        lambda: control_plane.audit.calls(since=mark, user="kubernetes-admin", resource="configmaps")
    )
    assert [(call.verb, call.namespace, call.code) for call in calls] == [("create", namespace, 201)]


async def test_clusters_side_by_side_do_not_know_of_each_other(api: Api, namespace: str, own_plane: ControlPlane):
    await api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here"}}, namespace)
    async with Api.connected(own_plane.admin_kubeconfig) as other:
        assert await other.find(CONFIG_MAPS, "here", namespace) is None
        assert await other.list(CRDS) == []  # it was started with --no-crds
    done = run_cluster_command("down", "--name", own_plane.name, home=own_plane.home)
    assert done.returncode == 0
    assert await api.get(SERVICE_ACCOUNTS, "default", namespace)


async def test_up_restarts_what_ended_and_keeps_the_data(own_plane: ControlPlane):
    async with Api.connected(own_plane.admin_kubeconfig) as before:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}
        await before.create(CONFIG_MAPS, config_map, "default")
    for component in record_of(own_plane).components:
        os.kill(component.process.pid, signal.SIGKILL)

    done = run_cluster_command("status", "--name", own_plane.name, home=own_plane.home)
    assert (done.returncode, done.stdout.count(" ended ")) == (1, 4)
    done = run_cluster_command("kubeconfig", "--name", own_plane.name, home=own_plane.home)
    assert done.returncode == 1
    assert "start it again with" in done.stderr

    done = run_cluster_command("up", "--name", own_plane.name, home=own_plane.home)
    assert done.returncode == 0, done.stderr
    async with Api.connected(own_plane.admin_kubeconfig) as after:
        assert await after.find(CONFIG_MAPS, "kept", "default")
        assert len(await after.list(CRDS)) == 4  # this `up` did not say --no-crds


def test_up_leaves_nothing_that_ended_while_it_waited(own_plane: ControlPlane):
    """A client of the API server may end only when its server comes back."""
    process = {component.name: component.process.pid for component in record_of(own_plane).components}
    os.kill(process["etcd"], signal.SIGKILL)
    command = [*VCJOB, "up", "--name", own_plane.name]
    env = {**os.environ, "VCJOB_CLUSTER_HOME": str(own_plane.home)}
    with subprocess.Popen(command, env=env, text=True, stderr=subprocess.PIPE) as up:
        assert up.stderr is not None
        assert "etcd had ended; starting it again" in up.stderr.readline()
        os.kill(process["kube-scheduler"], signal.SIGKILL)
        assert up.wait(timeout=120) == 0
    done = run_cluster_command("status", "--name", own_plane.name, home=own_plane.home)
    assert done.returncode == 0
    assert " ended " not in done.stdout


def test_down_ends_every_process_and_leaves_no_file(tmp_path: Path):
    with running_cluster("gone", home=tmp_path) as plane:
        processes = [component.process for component in record_of(plane).components]
        assert all(is_alive(process) for process in processes)
    assert not any(is_alive(process) for process in processes)
    assert list(tmp_path.iterdir()) == []


def test_down_of_a_cluster_that_is_not_there_is_no_error(tmp_path: Path):
    done = run_cluster_command("down", "--name", "ghost", home=tmp_path)
    assert done.returncode == 0
    assert "nothing to do" in done.stdout


def socket_inodes(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def listening_sockets() -> Iterator[tuple[str, str]]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # LISTEN
                yield fields[1].partition(":")[0], fields[9]

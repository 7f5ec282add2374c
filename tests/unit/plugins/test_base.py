"""Edits of a Pod draft: nothing of the template changes, and what the user has set stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.plugins.registry import enabled_plugins, known_names

from .builders import container, job

SVC_VOLUME = {"name": "train-svc", "configMap": {"name": "train-svc"}}


@given(st.sets(st.sampled_from(known_names())), st.integers(0, 3))
def test_no_plugin_changes_the_template(names: set[str], replicas: int) -> None:
    """Templates are shared: after every hook of every plugin they are byte for byte what they were."""
    shared = container("head", command=None, env=[{"name": "RANK", "value": "7"}], ports=[{"containerPort": 22}])
    spec = {"initContainers": [container("init")], "volumes": [{"name": "data", "emptyDir": {}}]}
    made = job().task("master", 1, shared, **spec).task("worker", replicas, shared, **spec).task("head", 1, shared)
    for name in names:
        made = made.plugin(name, "--wait-master-enabled")
    before = json.dumps(made.make().model_dump())
    kept = made.make()
    for plugin in enabled_plugins(kept):
        plugin.problems(), plugin.notes(), plugin.on_job_add(), plugin.on_job_update(), plugin.on_job_delete()
    for task in kept.spec.tasks:
        for index in range(task.replicas):
            made.pod(task.name, index).finished_spec()
    assert json.dumps(kept.model_dump()) == before


@given(st.sets(st.sampled_from(known_names())))
def test_hooks_say_the_same_every_time(names: set[str]) -> None:
    """Asked again, or asked of another instance, a plugin wants the same objects."""
    made = job().task("master", 1).task("worker", 2).task("head", 1)
    for name in names:
        made = made.plugin(name)
    for first, second in zip(enabled_plugins(made.make()), enabled_plugins(made.make()), strict=True):
        assert first.on_job_add() == first.on_job_add() == second.on_job_update()
        assert first.on_job_delete() == tuple(wanted.ref for wanted in first.on_job_add())


def test_init_containers_and_sidecars_get_env_and_mounts() -> None:
    sidecar = container("proxy", restartPolicy="Always")
    pod = job().plugin("env").plugin("svc").task("w", 1, initContainers=[container("init"), sidecar]).pod("w")
    for found in pod.every_container():
        assert [entry["name"] for entry in found["env"]][:2] == ["VK_TASK_INDEX", "VC_TASK_INDEX"]
        assert [mount["mountPath"] for mount in found["volumeMounts"]] == ["/etc/volcano"]


def test_a_volume_of_the_same_name_stays_and_is_named() -> None:
    own = {"name": "train-svc", "emptyDir": {}}
    pod = job().plugin("svc").task("w", 1, volumes=[own]).pod("w")
    assert pod.spec["volumes"] == [own]
    assert "volumeMounts" not in pod.containers[0]
    assert "task w has its own volume train-svc" in pod.notes[0].message


def test_a_volume_that_shows_the_same_object_is_used() -> None:
    own = SVC_VOLUME | {"configMap": {"name": "train-svc", "defaultMode": 0o444}}
    pod = job().plugin("svc").task("w", 1, volumes=[own]).pod("w")
    assert pod.spec["volumes"] == [own]
    assert pod.containers[0]["volumeMounts"] == [{"name": "train-svc", "mountPath": "/etc/volcano"}]
    assert pod.notes == []


@pytest.mark.parametrize("path", ["/etc/volcano", "/etc/volcano/"])
def test_a_mount_at_the_same_path_stays_and_is_named(path: str) -> None:
    mount = {"name": "data", "mountPath": path}
    containers = [container("main", volumeMounts=[mount]), container("side")]
    pod = job().plugin("svc").task("w", 1, *containers, volumes=[{"name": "data", "emptyDir": {}}]).pod("w")
    assert pod.containers[0]["volumeMounts"] == [mount]
    assert [found["mountPath"] for found in pod.containers[1]["volumeMounts"]] == ["/etc/volcano"]
    assert [note.reason for note in pod.notes] == ["PluginConflict"]
    assert "container main of task w mounts volume data at /etc/volcano" in pod.notes[0].message


def test_a_mount_of_the_same_object_needs_no_word() -> None:
    volume = {"name": "mine", "configMap": {"name": "train-svc"}}
    mounted = container(volumeMounts=[{"name": "mine", "mountPath": "/etc/volcano"}])
    assert job().plugin("svc").task("w", 1, mounted, volumes=[volume]).pod("w").notes == []


def test_notes_of_pods_of_one_task_are_equal() -> None:
    made = job().plugin("svc").task("w", 2, volumes=[{"name": "train-svc", "emptyDir": {}}])
    assert made.pod("w", 0).notes == made.pod("w", 1).notes


@pytest.mark.parametrize(
    ("declared", "added"),
    [
        pytest.param([], [{"name": "mpijob-port", "containerPort": 22}], id="none"),
        pytest.param([{"containerPort": 22}], [], id="the number"),
        pytest.param([{"containerPort": 22, "name": "ssh", "protocol": "TCP"}], [], id="under another name"),
        pytest.param(
            [{"containerPort": 22, "protocol": "UDP"}], [{"name": "mpijob-port", "containerPort": 22}], id="only UDP"
        ),
        pytest.param([{"containerPort": 9, "name": "mpijob-port"}], [{"containerPort": 22}], id="our name is taken"),
    ],
)
def test_a_port_is_declared_where_it_is_not(declared: list[dict], added: list[dict]) -> None:
    found = job().plugin("mpi").task("master", 1, container(ports=declared)).task("worker", 1).pod("master")
    assert found.containers[0]["ports"] == declared + added


def test_on_the_network_of_the_host_a_port_is_declared_once_a_pod() -> None:
    containers = [container("main"), container("side")]
    made = job().plugin("mpi").task("master", 1, *containers, hostNetwork=True, initContainers=[container("init")])
    pod = made.task("worker", 1).pod("master")
    assert [len(found.get("ports", ())) for found in pod.every_container()] == [0, 1, 0]


def test_a_template_may_hold_nulls() -> None:
    made = job().task(
        "master", 1, container(env=None, ports=None, volumeMounts=None), volumes=None, initContainers=None
    )
    for name in ("env", "svc", "ssh", "mpi", "pytorch", "hcclrank"):
        made = made.plugin(name)
    assert len(made.task("worker", 1).pod("master").finished_spec()["volumes"]) == 2

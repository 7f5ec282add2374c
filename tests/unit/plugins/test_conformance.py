"""The plugins make what Volcano made of the same Jobs.

The recordings in tests/data/conformance are whole objects; compared here is what plugins have a part in.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.api.job import Job
from vcjob.plugins.base import Manifest, WantedObject
from vcjob.plugins.preview import preview_pod
from vcjob.plugins.registry import enabled_plugins, unknown_plugins

CASES = Path(__file__).parents[2] / "data" / "conformance"
KINDS = {"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "NetworkPolicy": "networkpolicies"}


def cases(*, rejected: bool) -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.json")):
        recorded = json.loads(path.read_text())
        if ("rejected" in recorded) is rejected:
            found.append(pytest.param(load(path.stem), recorded, id=path.stem))
    return found


def load(name: str) -> Job:
    raw = yaml.safe_load((CASES / f"{name}.yaml").read_text())
    raw["metadata"] |= {"namespace": "<ns>", "uid": "<uid>"}
    for index, task in enumerate(raw["spec"]["tasks"]):  # admission gives names where there are none
        task.setdefault("name", f"default{index}")
    return Job.model_validate(raw)


def by_name(entries: list[Manifest]) -> dict[str, Manifest]:
    """Return uniquely named entries without their order, which Volcano leaves to chance."""
    names = [entry["name"] for entry in entries]
    return {entry["name"] if names.count(entry["name"]) == 1 else f"{i}": entry for i, entry in enumerate(entries)}


def container_view(container: Manifest) -> Manifest:
    ports = [{"protocol": "TCP", **port} for port in container.get("ports") or ()]
    return {
        "name": container["name"],
        "command": container.get("command"),
        "args": container.get("args"),
        "env": by_name(container.get("env") or []),
        "ports": by_name(ports),
        "mounts": by_name(container.get("volumeMounts") or []),
    }


def pod_view(spec: Manifest) -> Manifest:
    volumes = [volume for volume in spec.get("volumes") or () if "persistentVolumeClaim" not in volume]
    for volume in volumes:
        if "configMap" in volume:
            volume["configMap"] = {"defaultMode": 0o644, **volume["configMap"]}
    claims = {v["name"] for v in spec.get("volumes") or () if "persistentVolumeClaim" in v}
    view = {
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "volumes": by_name(volumes),
        "containers": [container_view(found) for found in spec["containers"]],
        "initContainers": [container_view(found) for found in spec.get("initContainers") or ()],
    }
    for found in view["containers"]:
        found["mounts"] = {name: mount for name, mount in found["mounts"].items() if name not in claims}
    return view


def object_view(kind: str, manifest: Manifest) -> Manifest:
    view = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    if kind == "Service":
        view["spec"] = {"type": "ClusterIP", **view["spec"]}
    return view


def made(wanted: WantedObject) -> Manifest:
    """Return the object with its keys, shown as in the recordings."""
    manifest = dict(wanted.manifest)
    if wanted.ref.kind == "Secret":
        data = manifest["data"] | (wanted.generate()["data"] if wanted.generate else {})
        manifest["data"] = {key: key_view(key, base64.b64decode(value).decode()) for key, value in data.items()}
    return object_view(wanted.ref.kind, manifest)


def key_view(key: str, text: str) -> str:
    if key == "config" or len(text) <= 20:
        return text
    return f"<{text.splitlines()[0] if key == 'id_rsa' else text.split()[0]}>"


@pytest.mark.parametrize(("job", "recorded"), cases(rejected=False))
def test_pods_are_as_recorded(job: Job, recorded: Manifest) -> None:
    drafts = [preview_pod(job, task=task, index=i) for task in job.spec.tasks for i in range(task.replicas)]
    # Where a task waits for another one, its Pods are not in the recording.
    found = {draft.name: pod_view(draft.finished_spec()) for draft in drafts if draft.name in recorded["pods"]}
    assert found == {name: pod_view(pod["spec"]) for name, pod in recorded["pods"].items()}


@pytest.mark.parametrize(("job", "recorded"), cases(rejected=False))
def test_objects_are_as_recorded(job: Job, recorded: Manifest) -> None:
    wanted = [found for plugin in enabled_plugins(job) for found in plugin.on_job_add()]
    expected = {
        (kind, name): object_view(kind, manifest)
        for kind, plural in KINDS.items()
        for name, manifest in recorded[plural].items()
    }
    assert {(found.ref.kind, found.ref.name): made(found) for found in wanted} == expected


@pytest.mark.parametrize(("job", "recorded"), cases(rejected=False))
def test_marks_are_as_recorded(job: Job, recorded: Manifest) -> None:
    status = next(iter(recorded["jobs"].values()))["status"]
    marks = {key for key in status.get("controlledResources", {}) if key.startswith("plugin-")}
    assert {f"plugin-{plugin.name}" for plugin in enabled_plugins(job) if plugin.marked} == marks


@pytest.mark.parametrize(("job", "recorded"), cases(rejected=False))
def test_an_accepted_job_has_no_problems(job: Job, recorded: Manifest) -> None:
    assert recorded["pods"]
    assert unknown_plugins(job) == ()
    assert [plugin.problems() for plugin in enabled_plugins(job) if plugin.problems()] == []


def test_an_unknown_plugin_is_named() -> None:
    assert unknown_plugins(load("unknown-plugin")) == ("nosuch",)


def test_mpi_without_its_master_is_a_problem() -> None:
    problems = [text for plugin in enabled_plugins(load("mpi-wrong-names")) for text in plugin.problems()]
    assert len(problems) == 1
    assert problems[0].startswith("The specified mpi master task was not found")

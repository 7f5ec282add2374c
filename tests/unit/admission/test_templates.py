"""What is told of a Pod template before a Pod is made; each case was tried on an API server with a Pod of its own."""

from typing import Any

import pytest

from vcjob.admission.templates import check_template
from vcjob.admission.validation import validate_create
from vcjob.api.job import Task

from .builders import RawJob, job

PORT = {"containerPort": 80}
PROBE = {"exec": {"command": ["x"]}}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
LIMITS = {"cpu": "1", "memory": "1Gi"}


def told(built: RawJob) -> list[str]:
    task = Task.model_validate(built.make()["spec"]["tasks"][0])
    return [f"{problem.field} {problem.message}" for problem in check_template(task, index=0)]


def mounts(*paths: str) -> list[dict[str, Any]]:
    return [{"name": "v", "mountPath": path} for path in paths]


def init(**fields: Any) -> RawJob:
    return job().pod(initContainers=[{"name": "init", "image": "i", **fields}])


def labelled(labels: dict[str, str]) -> RawJob:
    template = job().make()["spec"]["tasks"][0]["template"]
    return job().task(template={**template, "metadata": {"labels": labels}})


GOOD = {
    "several containers": init(),
    "a sidecar with a probe": init(restartPolicy="Always", livenessProbe=PROBE),
    "named ports": job().container(ports=[PORT | {"name": "http"}, {"containerPort": 81, "name": "h2"}]),
    "the same number twice without a name": job().container(ports=[PORT, PORT | {"protocol": "UDP"}]),
    "env from elsewhere": job().container(env=[{"name": "A", "valueFrom": FIELD}, {"name": "b.c-d", "value": ""}]),
    "a volume and its mount": job()
    .pod(volumes=[{"name": "v", "emptyDir": {}}])
    .container(volumeMounts=mounts("/a", "/b")),
    "a volume without a source": job().pod(volumes=[{"name": "v"}]),
    "requests below limits": job().container(
        resources={"limits": LIMITS, "requests": {"cpu": "500m", "memory": "1024Mi"}}
    ),
    "requests alone": job().container(resources={"requests": {"cpu": 1}}),
    "a whole device": job().container(resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": "1"}}),
    "the host's network": job().pod(hostNetwork=True).container(ports=[PORT | {"hostPort": 80}]),
    "labels": labelled({"a.b/c": "D_e.f", "x": ""}),
}


@pytest.mark.parametrize("built", [pytest.param(built, id=title) for title, built in GOOD.items()])
def test_a_good_template_is_let_in(built: RawJob) -> None:
    assert told(built) == []


BAD = {
    "no containers": (job().pod(containers=[]), "containers Required value"),
    "no template": (job().task(template=None), "containers Required value"),
    "container without a name": (job().container(name=None), "containers[0].name Required value"),
    "container name": (job().container(name="Main"), "containers[0].name a container's name must be a DNS label"),
    "image": (job().container(image=""), "containers[0].image Required value"),
    "image with a blank": (
        job().container(image=" i"),
        "containers[0].image must not have leading or trailing whitespace",
    ),
    "pull policy": (job().container(imagePullPolicy="Often"), "containers[0].imagePullPolicy Unsupported value"),
    "two containers of one name": (init(name="main"), "initContainers[0].name Duplicate value"),
    "probe of an init container": (
        init(readinessProbe=PROBE),
        "initContainers[0].readinessProbe may not be set",
    ),
    "port 0": (job().container(ports=[{"containerPort": 0}]), "ports[0].containerPort must be between 1 and 65535"),
    "port 65536": (
        job().container(ports=[{"containerPort": 65536}]),
        "ports[0].containerPort must be between 1 and 65535",
    ),
    "host port": (job().container(ports=[PORT | {"hostPort": -1}]), "ports[0].hostPort must be between 1 and 65535"),
    "host port on the host's network": (
        job().pod(hostNetwork=True).container(ports=[PORT | {"hostPort": 81}]),
        "ports[0].hostPort must match",
    ),
    "protocol": (job().container(ports=[PORT | {"protocol": "ICMP"}]), "ports[0].protocol Unsupported value"),
    "port name": (job().container(ports=[PORT | {"name": "a-very-long-name"}]), "ports[0].name must be at most 15"),
    "port name of digits": (job().container(ports=[PORT | {"name": "80"}]), "ports[0].name must be at most 15"),
    "port name twice": (
        job().container(ports=[PORT | {"name": "a"}, {"containerPort": 81, "name": "a"}]),
        "ports[1].name Duplicate",
    ),
    "env without a name": (job().container(env=[{"value": "x"}]), "env[0].name Required value"),
    "env name": (job().container(env=[{"name": "A=B"}]), "env[0].name a variable's name"),
    "env with value and source": (
        job().container(env=[{"name": "A", "value": "x", "valueFrom": FIELD}]),
        "env[0].valueFrom may not be specified when `value` is not empty",
    ),
    "env with two sources": (
        job().container(env=[{"name": "A", "valueFrom": FIELD | SECRET}]),
        "env[0].valueFrom may not have more than one field",
    ),
    "mount of an unknown volume": (job().container(volumeMounts=mounts("/a")), "volumeMounts[0].name Not found"),
    "mount path twice": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}}]).container(volumeMounts=mounts("/a", "/a")),
        "volumeMounts[1].mountPath must be unique",
    ),
    "mount without a path": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}}]).container(volumeMounts=[{"name": "v"}]),
        "volumeMounts[0].mountPath Required value",
    ),
    "volume name": (job().pod(volumes=[{"name": "V", "emptyDir": {}}]), "volumes[0].name must be a DNS label"),
    "volume twice": (job().pod(volumes=[{"name": "v"}, {"name": "v"}]), "volumes[1].name Duplicate value"),
    "volume of two types": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]),
        "volumes[0] may not specify more than 1 volume type",
    ),
    "no quantity": (
        job().container(resources={"limits": {"cpu": "1 core"}}),
        "resources.limits[cpu] '1 core' is not a quantity",
    ),
    "negative amount": (job().container(resources={"limits": {"cpu": "-1"}}), "resources.limits[cpu] must be greater"),
    "request above limit": (
        job().container(resources={"limits": LIMITS, "requests": {"memory": "2Gi"}}),
        "resources.requests must be less than or equal to memory limit of 1Gi",
    ),
    "half a device": (
        job().container(resources={"limits": {"x.y/gpu": "2"}, "requests": {"x.y/gpu": "1"}}),
        "resources.requests must be equal to x.y/gpu limit of 2",
    ),
    "a part of a device": (
        job().container(resources={"limits": {"x.y/gpu": "1.5"}}),
        "resources.limits[x.y/gpu] must be an integer",
    ),
    "device without a limit": (
        job().container(resources={"requests": {"x.y/gpu": "1"}}),
        "resources.limits Limit must be set for non overcommitable",
    ),
    "restart policy": (job().pod(restartPolicy="Sometimes"), "spec.restartPolicy Unsupported value"),
    "DNS policy": (job().pod(dnsPolicy="Mine"), "spec.dnsPolicy Unsupported value"),
    "node selector": (job().pod(nodeSelector={"bad key": "v"}), "spec.nodeSelector a key must be"),
    "node selector's value": (
        job().pod(nodeSelector={"a": "v v"}),
        "spec.nodeSelector[a] a label's value must be",
    ),
    "toleration": (
        job().pod(tolerations=[{"operator": "Exists"}, {"operator": "Foo"}]),
        "spec.tolerations[1].operator Unsupported value",
    ),
    "toleration's effect": (
        job().pod(tolerations=[{"key": "a", "effect": "Never"}]),
        "spec.tolerations[0].effect Unsupported value",
    ),
    "hostname": (job().pod(hostname="a.b"), "spec.hostname must be a DNS label"),
    "subdomain": (job().pod(subdomain="A"), "spec.subdomain must be a DNS label"),
    "service account": (job().pod(serviceAccountName="A"), "spec.serviceAccountName must be a DNS subdomain"),
    "deadline": (job().pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds must be greater than 0"),
    "ephemeral container": (
        job().pod(ephemeralContainers=[{"name": "e", "image": "i"}]),
        "spec.ephemeralContainers ephemeral containers not allowed",
    ),
    "label key": (
        labelled({"a b": "c"}),
        "metadata.labels a key must be",
    ),
    "label value": (
        labelled({"a": "b c"}),
        "metadata.labels[a] a label's value must be",
    ),
}


@pytest.mark.parametrize(("built", "fragment"), [pytest.param(*case, id=title) for title, case in BAD.items()])
def test_a_bad_template_is_refused_with_one_sentence(built: RawJob, fragment: str) -> None:
    (sentence,) = told(built)
    assert sentence.startswith("spec.tasks[0].template.")
    assert fragment in sentence
    assert validate_create(built.make())

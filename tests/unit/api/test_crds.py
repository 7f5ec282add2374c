"""The generated CRDs: up to date, structural, and as the users of Volcano know them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.api.crds import KINDS, core_schemas, crd, main
from vcjob.api.schema import core_schema, needed_schemas

REPOSITORY = Path(__file__).parents[3]
CRDS = {kind.kind: crd(kind, core=core_schemas()) for kind in KINDS}


def version_of(kind: str) -> dict[str, Any]:
    return CRDS[kind]["spec"]["versions"][0]


def schema_at(kind: str, *path: str) -> dict[str, Any]:
    node = version_of(kind)["schema"]["openAPIV3Schema"]
    for name in path:
        node = node["items"] if name == "[]" else node["properties"][name]
    return node


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from nodes(schema[inner], f"{path}[]")


def test_the_committed_crds_are_up_to_date() -> None:
    assert main(["--out", str(REPOSITORY / "deploy" / "crds"), "--check"]) == 0


def test_a_stale_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path), "--check"]) == 1
    assert "jobs.batch.volcano.sh.yaml is not up to date; run: make crds" in capsys.readouterr().err


def test_the_written_files_are_the_definitions(tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    written = [yaml.safe_load(path.read_text()) for path in tmp_path.iterdir()]
    assert {one["spec"]["names"]["kind"]: one for one in written} == CRDS


@pytest.mark.parametrize("kind", CRDS)
def test_the_schema_is_structural(kind: str) -> None:
    for path, node in nodes(version_of(kind)["schema"]["openAPIV3Schema"]):
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert not {"$ref", "allOf", "oneOf", "title", "x-core", "x-default", "exclusiveMaximum"} & node.keys(), path
        assert "default" not in node or path.rpartition(".")[2] not in node.get("required", ()), path


@pytest.mark.parametrize("kind", CRDS)
def test_no_field_of_ours_is_without_a_description(kind: str) -> None:
    silent = [
        path
        for path, node in nodes(version_of(kind)["schema"]["openAPIV3Schema"])
        if "description" not in node
        and not path.endswith("[]")
        and path.rpartition(".")[2] not in ("apiVersion", "kind", "metadata")
        and not any(core in path for core in (".template.", ".volumeClaim.", ".labelSelector."))
    ]
    assert silent == []


@pytest.mark.parametrize("kind", CRDS)
def test_a_definition_survives_kubectl_apply(kind: str) -> None:
    """The annotation that a client-side apply writes must stay below 256 KiB."""
    assert len(json.dumps(CRDS[kind], separators=(",", ":"))) < 200_000


@pytest.mark.parametrize(
    ("kind", "name", "scope", "short_names", "subresources"),
    [
        ("Job", "jobs.batch.volcano.sh", "Namespaced", ["vcjob", "vj"], {"status": {}}),
        ("Command", "commands.bus.volcano.sh", "Namespaced", None, None),
        ("PodGroup", "podgroups.scheduling.volcano.sh", "Namespaced", ["pg", "podgroup-v1beta1"], None),
        ("Queue", "queues.scheduling.volcano.sh", "Cluster", ["q", "queue-v1beta1"], {"status": {}}),
    ],
)
def test_a_kind_has_the_names_and_subresources_of_volcano(
    kind: str, name: str, scope: str, short_names: list[str] | None, subresources: dict[str, Any] | None
) -> None:
    definition = CRDS[kind]
    assert definition["metadata"] == {"name": name, "annotations": {"helm.sh/resource-policy": "keep"}}
    assert definition["spec"]["scope"] == scope
    assert definition["spec"]["names"].get("shortNames") == short_names
    assert version_of(kind).get("subresources") == subresources


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "minAvailable"), {"type": "integer", "format": "int32", "minimum": 0}),
        (("spec", "queue"), {"default": "default", "maxLength": 253}),
        (("spec", "maxRetry"), {"default": 3, "minimum": 0}),
        (("spec", "minSuccess"), {"minimum": 1}),
        (("spec", "tasks"), {"minItems": 1}),
        (("spec", "tasks", "[]", "name"), {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
        (("spec", "tasks", "[]", "partitionPolicy", "minPartitions"), {"default": 0}),
        (("spec", "tasks", "[]", "partitionPolicy"), {"required": ["totalPartitions", "partitionSize"]}),
        (("spec", "tasks", "[]", "template", "spec"), {"required": ["containers"]}),
        (("spec", "volumes", "[]"), {"required": ["mountPath"]}),
        (("spec", "volumes", "[]", "mountPath"), {"minLength": 1, "pattern": "^[^:]+$"}),
        (("spec", "networkTopology", "mode"), {"default": "hard", "enum": ["hard", "soft"]}),
    ],
)
def test_a_field_of_the_job_has_its_constraints(path: tuple[str, ...], expected: dict[str, Any]) -> None:
    node = schema_at("Job", *path)
    assert {key: node.get(key) for key in expected} == expected


def test_a_command_for_nothing_is_refused_because_nobody_would_ever_look_at_it() -> None:
    assert schema_at("Command")["required"] == ["target"]


def test_a_template_keeps_only_the_metadata_that_a_pod_takes_from_it() -> None:
    metadata = schema_at("Job", "spec", "tasks", "[]", "template", "metadata")
    assert set(metadata["properties"]) == {"name", "namespace", "labels", "annotations", "finalizers"}


def test_a_container_port_is_tcp_by_default_and_its_number_has_no_default() -> None:
    ports = schema_at("Job", "spec", "tasks", "[]", "template", "spec", "containers", "[]", "ports")
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"
    assert "default" not in ports["items"]["properties"]["containerPort"]


def test_an_amount_is_a_number_or_a_text() -> None:
    limits = schema_at("Job", "spec", "tasks", "[]", "template", "spec", "containers", "[]", "resources", "limits")
    assert limits["additionalProperties"]["x-kubernetes-int-or-string"] is True


def test_the_core_types_are_reduced_to_what_is_needed() -> None:
    core = {
        "Pod": {
            "description": "long",
            "type": "object",
            "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}, "description": "long"}
            },
        },
        "Spec": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "string", "default": ""}, "b": {"type": "string", "default": "x"}},
        },
        "Service": {"type": "object"},
    }
    needed = needed_schemas(["Pod"], core=core)
    assert list(needed) == ["Pod", "Spec"]
    assert core_schema("Pod", core=needed) == {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}},
            }
        },
    }

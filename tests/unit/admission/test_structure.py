"""The CRD's schema, read as the API server reads it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from tests.unit.admission.builders import RawJob, job, task
from tests.unit.admission.strategies import anything, odd_jobs

from vcjob.admission.structure import check_structure
from vcjob.api.crds import KINDS, core_schemas
from vcjob.api.schema import Schema, model_schema

JOBS = model_schema(KINDS[0].model, core=core_schemas())
ABORT = {"event": "PodFailed", "action": "AbortJob"}
PORT = {"containerPort": 80}


def told(built: RawJob) -> list[str]:
    return [str(problem) for problem in check_structure(built.make(), schema=JOBS)]


def nodes(schema: Schema) -> Iterator[Schema]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from nodes(schema[inner])


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(job(), id="a plain one"),
        pytest.param(job().spec(queue="team.science", maxRetry=0, runningEstimate="1h"), id="fields with rules"),
        pytest.param(job().policies({**ABORT, "timeout": "-5s"}), id="a timeout"),
        pytest.param(job().container(ports=[PORT, {**PORT, "protocol": "UDP"}]), id="a port of two protocols"),
        pytest.param(job().container(resources={"limits": {"cpu": 1, "memory": "1.5Gi"}}), id="amounts"),
        pytest.param(job().spec(networkTopology={"mode": None}), id="null is absent"),
        pytest.param(job().pod(nodeSelector={"a": "b"}), id="free keys"),
    ],
)
def test_a_good_job_fits_the_schema(built: RawJob) -> None:
    assert told(built) == []


@pytest.mark.parametrize(
    ("built", "sentence"),
    [
        pytest.param(
            job().task(name="Worker"), 'spec.tasks[0].name: "Worker": should match \'^[a-z0-9]', id="a pattern"
        ),
        pytest.param(job().task(name="wörker"), 'spec.tasks[0].name: "wörker": should match', id="only ASCII"),
        pytest.param(job().task(name="a.b"), 'spec.tasks[0].name: "a.b": should match', id="a dot"),
        pytest.param(job().task(name="worker\n"), "spec.tasks[0].name:", id="a line's end"),
        pytest.param(job().spec(queue="No Such!"), 'spec.queue: "No Such!": should match', id="a queue"),
        pytest.param(job().spec(queue="q" * 254), "should be at most 253 chars long", id="a long text"),
        pytest.param(
            job().volumes({"mountPath": "", "volumeClaimName": "c"}),
            'spec.volumes[0].mountPath: "": should be at least 1 chars long',
            id="an empty text",
        ),
        pytest.param(
            job().spec(networkTopology={"mode": "weird"}),
            'spec.networkTopology.mode: "weird": Unsupported value: supported values: hard, soft',
            id="none of the choices",
        ),
        pytest.param(
            job().policies({**ABORT, "events": ["PodFailed", "Nope"]}),
            'spec.policies[0].events[1]: "Nope": Unsupported value',
            id="none of the choices in a list",
        ),
        pytest.param(
            job().task(maxRetry=-2), "spec.tasks[0].maxRetry: -2: should be greater than or equal to 0", id="minimum"
        ),
        pytest.param(
            job().pod(terminationGracePeriodSeconds=2**63),
            f"should be less than or equal to {2**63 - 1}",
            id="more than 64 bits",
        ),
        pytest.param(
            job().container(ports=[{"containerPort": 2**31}]),
            f"ports[0].containerPort: {2**31}: should be less than or equal to {2**31 - 1}",
            id="more than 32 bits",
        ),
        pytest.param(job().tasks(), "spec.tasks: should be at least 1 items", id="an empty list"),
        pytest.param(
            job().task(partitionPolicy={"partitionSize": 2}),
            "spec.tasks[0].partitionPolicy.totalPartitions: Required value",
            id="required",
        ),
        pytest.param(
            job().container(resources={"limits": {"cpu": "lots"}}),
            'spec.tasks[0].template.spec.containers[0].resources.limits[cpu]: "lots": should match',
            id="under a free key",
        ),
        pytest.param(
            job().container(ports=[PORT, {**PORT, "protocol": "TCP"}]),
            'containers[0].ports[1]: "80, TCP": Duplicate value',
            id="twice in a list of keys",
        ),
    ],
)
def test_what_the_schema_forbids_is_named_with_path_value_and_rule(built: RawJob, sentence: str) -> None:
    assert any(sentence in said for said in told(built)), told(built)


def test_every_place_is_named() -> None:
    built = job().tasks(task("A", maxRetry=-1), task("B"))
    assert [said.partition(": ")[0] for said in told(built)] == [
        "spec.tasks[0].name",
        "spec.tasks[0].maxRetry",
        "spec.tasks[1].name",
    ]


def test_every_word_of_the_schema_is_understood() -> None:
    """A new word in the models must not go unheeded."""
    words = {word for node in nodes(JOBS) for word in node}
    judged = {"required", "enum", "pattern", "minimum", "minLength", "maxLength", "minItems", "maxItems", "format"}
    walked = {"properties", "items", "additionalProperties", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
    by_strict = {"type", "nullable", "anyOf", "x-kubernetes-int-or-string"}
    say_nothing = {"description", "default", "x-kubernetes-map-type"}
    assert words <= judged | walked | by_strict | say_nothing


def test_every_pattern_is_anchored() -> None:
    patterns = {node["pattern"] for node in nodes(JOBS) if "pattern" in node}
    assert patterns
    assert all(re.fullmatch(r"\^.*\$", pattern) for pattern in patterns)


@given(odd_jobs() | anything())
def test_no_input_makes_it_raise(raw: Any) -> None:
    for problem in check_structure(raw, schema=JOBS):
        assert str(problem)

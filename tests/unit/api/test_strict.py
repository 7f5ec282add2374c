"""Unknown fields and wrong types are named with their path; what the API server drops is dropped."""

from typing import Any

import pytest
from hypothesis import given
from tests.unit.admission.builders import RawJob, job
from tests.unit.admission.strategies import anything, odd_jobs

from vcjob.api.crds import KINDS, core_schemas
from vcjob.api.schema import model_schema
from vcjob.api.strict import Decoded, decode_strictly

JOBS = model_schema(KINDS[0].model, core=core_schemas())


def decoded(raw: Any) -> Decoded:
    return decode_strictly(raw, schema=JOBS)


def test_a_good_job_is_read_as_it_is() -> None:
    built = job().container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}])
    raw = built.plugins(svc=["--x"]).pod(nodeSelector={"any": "label"}).make()
    assert decoded(raw) == Decoded(value=raw, unknown=(), mistyped=())


@pytest.mark.parametrize(
    ("built", "sentence"),
    [
        pytest.param(job().spec(taskss=[]), 'unknown field "spec.taskss"; did you mean tasks?', id="of the spec"),
        pytest.param(
            job().pod(containrs=[]),
            'unknown field "spec.tasks[0].template.spec.containrs"; did you mean containers?',
            id="of a Pod",
        ),
        pytest.param(
            job().container(img="x"),
            'unknown field "spec.tasks[0].template.spec.containers[0].img"',
            id="of a container",
        ),
        pytest.param(job().task(xyzzy=1), 'unknown field "spec.tasks[0].xyzzy"', id="like nothing"),
        pytest.param(
            job().policies({"action": "AbortJob", "exitcode": 3}), 'field "spec.policies[0].exitcode"', id="its case"
        ),
    ],
)
def test_an_unknown_field_is_named_and_dropped(built: RawJob, sentence: str) -> None:
    found = decoded(built.make())
    (said,) = found.unknown
    assert sentence in said
    assert decoded(found.value) == Decoded(value=found.value, unknown=(), mistyped=())


def test_fields_of_the_metadata_are_checked_too() -> None:
    raw = {**job().make(), "metadata": {"name": "train", "lables": {}}, "sepc": {}}
    assert decoded(raw).unknown == (
        'unknown field "metadata.lables"; did you mean labels?',
        'unknown field "sepc"; did you mean spec?',
    )


def test_values_of_the_metadata_are_texts() -> None:
    raw = {**job().make(), "metadata": {"name": "train", "labels": {"a": 1}, "finalizers": [None]}}
    assert decoded(raw).mistyped == (
        "metadata.labels.a: must be of type string, not integer",
        "metadata.finalizers[0]: must be of type string, not null",
    )


@pytest.mark.parametrize(
    ("built", "sentence"),
    [
        pytest.param(
            job().task(replicas="two"), "spec.tasks[0].replicas: must be of type integer, not string", id="text"
        ),
        pytest.param(job().spec(tasks={}), "spec.tasks: must be of type array, not object", id="list"),
        pytest.param(job().spec(plugins=["svc"]), "spec.plugins: must be of type object, not array", id="mapping"),
        pytest.param(
            job().container(env=[{"name": "A", "value": 1}]),
            "spec.tasks[0].template.spec.containers[0].env[0].value: must be of type string, not integer",
            id="a number for a text",
        ),
        pytest.param(job().tasks(None), "spec.tasks[0]: must be of type object, not null", id="nothing in a list"),
        pytest.param(
            job().container(resources={"limits": {"cpu": 2**63}}),
            "must be of type integer or string, not number",
            id="more than 64 bits",
        ),
        pytest.param(job().pod(hostNetwork="true"), "hostNetwork: must be of type boolean, not string", id="yes"),
        pytest.param(
            job().container(resources={"limits": {"cpu": True}}), "must be of type integer or string", id="amount"
        ),
    ],
)
def test_a_value_of_another_type_is_named(built: RawJob, sentence: str) -> None:
    (said,) = decoded(built.make()).mistyped
    assert sentence in said


def test_null_is_as_good_as_absent() -> None:
    raw = job().make()
    raw["spec"] |= {"volumes": None, "plugins": {"env": None}}
    assert decoded(raw) == Decoded(value=raw, unknown=(), mistyped=())


@given(odd_jobs() | anything())
def test_no_input_makes_it_raise(raw: Any) -> None:
    once = decoded(raw)
    assert decoded(once.value).unknown == ()

"""What is told of a Pod template before a Pod is made."""

import pytest

from vcjob.admission.templates import check_template
from vcjob.admission.validation import find_fatal, validate_create
from vcjob.api.job import Task

from .builders import RawJob, job
from .templates import BAD, GOOD


def told(built: RawJob) -> list[str]:
    task = Task.model_validate(built.make()["spec"]["tasks"][0])
    return [f"{problem.field} {problem.message}" for problem in check_template(task, index=0)]


@pytest.mark.parametrize("built", [pytest.param(built, id=title) for title, built in GOOD.items()])
def test_a_good_template_is_let_in(built: RawJob) -> None:
    assert told(built) == []


@pytest.mark.parametrize(("built", "fragment"), [pytest.param(*case, id=title) for title, case in BAD.items()])
def test_a_bad_template_is_refused_with_one_sentence(built: RawJob, fragment: str) -> None:
    (sentence,) = told(built)
    assert sentence.startswith("spec.tasks[0].template.")
    assert fragment in sentence
    assert validate_create(built.make())


@pytest.mark.parametrize(
    ("built", "sentence"),
    [
        pytest.param(job().pod(volumes="text"), "spec.volumes must be a list of objects", id="volumes"),
        pytest.param(job().container(env=["A"]), "containers[0].env[0] must be an object", id="a variable"),
        pytest.param(job().container(ports={"a": 1}), "containers[0].ports must be a list of objects", id="ports"),
        pytest.param(
            job().container(volumeMounts="-1s"), "containers[0].volumeMounts must be a list of objects", id="mounts"
        ),
        pytest.param(job().pod(containers=["a"]), "spec.containers[0] must be an object", id="a container"),
    ],
)
def test_what_plugins_add_to_must_be_lists_of_objects_also_without_a_schema(built: RawJob, sentence: str) -> None:
    assert sentence in " | ".join(told(built))
    assert find_fatal(built.make())

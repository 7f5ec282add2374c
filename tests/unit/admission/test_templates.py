"""What is told of a Pod template before a Pod is made."""

import pytest

from vcjob.admission.templates import check_template
from vcjob.admission.validation import validate_create
from vcjob.api.job import Task

from .builders import RawJob
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

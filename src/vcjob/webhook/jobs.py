"""The verdicts on Jobs: defaults at creation, rules at creation and change. Pure; the rules are in `admission`.

A change that leaves the spec alone is always let through, without warnings: labels and finalizers must stay writable.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vcjob.admission.change import is_same_spec
from vcjob.admission.defaulting import default_patch
from vcjob.admission.problem import Problem, denial
from vcjob.admission.raw import mapping, text
from vcjob.admission.validation import validate_create, validate_update, warnings
from vcjob.api.names import DEFAULT_QUEUE

from .review import Verdict

__all__ = ("judge_change", "judge_new", "mutate_new", "queue_of")

Raw = dict[str, Any]


def mutate_new(job: Raw, *, scheduler: str) -> Verdict:
    """Return the defaults that a new Job gets; `scheduler` is for one that names none."""
    return Verdict(patch=default_patch(job, scheduler=scheduler))


def judge_new(job: Raw, *, others: Iterable[Problem] = ()) -> Verdict:
    """Return whether a new Job is let in; `others` are problems that were found elsewhere."""
    return Verdict(denial=denial((*validate_create(job), *others)), warnings=warnings(job))


def judge_change(old: Raw, new: Raw) -> Verdict:
    """Return whether a Job may be changed so."""
    if old.get("spec") == new.get("spec") or is_same_spec(old, new):
        return Verdict()
    return Verdict(denial=denial(validate_update(old, new)), warnings=warnings(new))


def queue_of(job: Mapping[str, Any]) -> str:
    """Return the name of the Queue that a Job goes to."""
    return text(mapping(job, "spec"), "queue") or DEFAULT_QUEUE

"""The two annotations that place a Queue for the scheduler's hierarchical fair share: a path and its weights. Pure.

`volcano.sh/hierarchy: root/science/physics` goes with `volcano.sh/hierarchy-weights: 1/2/8`: one weight for each name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vcjob.api.names import ANNOTATION_HIERARCHY, ANNOTATION_HIERARCHY_WEIGHTS
from vcjob.api.queue import ROOT_QUEUE

from .problem import Problem, refused
from .raw import mapping, text

__all__ = ("check_hierarchy", "hierarchy_of", "rooted_hierarchy")

Raw = Mapping[str, Any]

_NUMBER: Final = re.compile(r"\d+(\.\d*)?|\.\d+", re.ASCII)


def hierarchy_of(queue: Raw) -> tuple[str, str]:
    """Return the path and the weights of a Queue; empty what it has not."""
    annotations = mapping(queue, "metadata", "annotations")
    return text(annotations, ANNOTATION_HIERARCHY), text(annotations, ANNOTATION_HIERARCHY_WEIGHTS)


def rooted_hierarchy(queue: Raw) -> dict[str, str]:
    """Return the annotations that must change so that the path begins at the root; none when it does."""
    path, weights = hierarchy_of(queue)
    if not path or not weights or path.split("/")[0] == ROOT_QUEUE:
        return {}
    return {ANNOTATION_HIERARCHY: f"{ROOT_QUEUE}/{path}", ANNOTATION_HIERARCHY_WEIGHTS: f"1/{weights}"}


def check_hierarchy(queue: Raw, *, others: Iterable[Raw]) -> Iterator[Problem]:
    """Yield what is wrong with a Queue's path and weights; `others` are the other Queues of the cluster."""
    path, weights = hierarchy_of(queue)
    if not path and not weights:
        return
    names, numbers = path.split("/"), weights.split("/")
    if len(names) != len(numbers):
        message = (
            f"{ANNOTATION_HIERARCHY} must have the same length with {ANNOTATION_HIERARCHY_WEIGHTS}: {len(names)} names "
            f"and {len(numbers)} weights"
        )
        yield _refused(ANNOTATION_HIERARCHY, path, message=message)
    for number in numbers:
        if not _NUMBER.fullmatch(number) or not float(number) > 0:
            message = f"{number!r} in the {ANNOTATION_HIERARCHY_WEIGHTS} must be a number larger than 0"
            yield _refused(ANNOTATION_HIERARCHY_WEIGHTS, weights, message=message)
    for other in others:
        if path and hierarchy_of(other)[0].startswith(f"{path}/"):
            name = text(mapping(other, "metadata"), "name")
            message = f"must not be a path above that of another queue; queue `{name}` is at {hierarchy_of(other)[0]}"
            yield _refused(ANNOTATION_HIERARCHY, path, message=message)
            return


def _refused(annotation: str, value: str, *, message: str) -> Problem:
    return refused(f"metadata.annotations[{annotation}]", value, message=message)

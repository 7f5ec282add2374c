"""The stages of fake Pods: at most one of them may match a Pod at any time."""

import re
from itertools import product
from typing import Any

import yaml

from vcjob.cluster import fakes
from vcjob.cluster.fakes import stages

PHASES = ("Pending", "Running", "Succeeded", "Failed")
OUTCOMES = (None, "Pending", "Succeeded", "Failed")


def matches(expression: dict[str, Any], value: str | None) -> bool:
    match expression["operator"]:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
    raise AssertionError(expression)


def value_of(key: str, pod: dict[str, str | None]) -> str | None:
    found = re.search(r"fake-[a-z-]+|deletionTimestamp|finalizers|phase", key)
    assert found, key
    return pod.get(found[0])


def test_no_two_stages_match_the_same_pod():
    all_stages = [document for document in yaml.safe_load_all(stages()) if document["kind"] == "Stage"]
    pod_stages = [stage for stage in all_stages if stage["spec"]["resourceRef"]["kind"] == "Pod"]
    assert len(pod_stages) == 6
    for phase, outcome, init, stop, deleted in product(PHASES, OUTCOMES, (None, "1"), (None, "1"), (None, "now")):
        pod = {
            "phase": phase,
            "fake-outcome": outcome,
            "fake-init-exit-code": init,
            "fake-stop-exit-code": stop,
            "deletionTimestamp": deleted,
        }
        matching = [
            stage["metadata"]["name"]
            for stage in pod_stages
            if all(matches(e, value_of(e["key"], pod)) for e in stage["spec"]["selector"]["matchExpressions"])
        ]
        assert len(matching) <= 1, (pod, matching)


def test_the_documentation_names_every_annotation_that_a_stage_reads():
    assert fakes.__doc__
    read = set(re.findall(r"vcjob/fake-[a-z-]+", "\n".join(stages().splitlines()[2:])))
    assert read == set(re.findall(r"vcjob/fake-[a-z-]+", fakes.__doc__))

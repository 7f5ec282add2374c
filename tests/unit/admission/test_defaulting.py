"""What is filled into a Job that is silent."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from vcjob.admission.defaulting import default_job, default_patch, effective_job

from .builders import RawJob, job, task
from .strategies import anything, odd_jobs


def default(built: RawJob) -> dict[str, Any]:
    return default_job(built.make())["spec"]


def test_a_silent_job_gets_queue_scheduler_and_retries() -> None:
    spec = default(job())
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)


def test_unnamed_tasks_are_named_by_their_place() -> None:
    spec = default(job().tasks(task(None), task(""), task("own")))
    assert [t["name"] for t in spec["tasks"]] == ["default0", "default1", "own"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, 2, id="all replicas"),
        pytest.param({"minAvailable": 1}, 1, id="what the user says"),
        pytest.param({"minAvailable": 0}, 0, id="zero is said, not silent"),
        pytest.param(
            {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "minPartitions": 1}}, 1, id="partitions"
        ),
        pytest.param(
            {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "minPartitions": 0}}, 2, id="no partition"
        ),
    ],
)
def test_a_task_needs(fields: dict[str, Any], expected: int) -> None:
    assert default(job().task(**fields))["tasks"][0]["minAvailable"] == expected


@pytest.mark.parametrize(
    ("tasks", "given_minimum", "expected"),
    [
        pytest.param([task("a", 2), task("b", 3)], None, 5, id="the sum of replicas"),
        pytest.param([task("a", 2, minAvailable=1), task("b", 3)], None, 4, id="the sum of the tasks' minimums"),
        pytest.param([task("a", 2)], 0, 2, id="zero is silent at creation"),
        pytest.param([task("a", 2)], 1, 1, id="what the user says"),
    ],
)
def test_a_job_needs(tasks: list[Any], given_minimum: int | None, expected: int) -> None:
    assert default(job().tasks(*tasks).spec(minAvailable=given_minimum))["minAvailable"] == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({}, None),
    ],
)
def test_pods_on_the_hosts_network_find_services(pod: dict[str, Any], expected: str | None) -> None:
    assert default(job().pod(**pod))["tasks"][0]["template"]["spec"].get("dnsPolicy") == expected


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"pytorch": ["--port=1"]}, {"pytorch": ["--port=1"], "svc": []}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"mpi": []}, {"mpi": [], "svc": [], "ssh": []}),
        ({"mpi": [], "ssh": ["--ssh-port=23"]}, {"mpi": [], "ssh": ["--ssh-port=23"], "svc": []}),
        ({"env": []}, {"env": []}),
        ({}, {}),
    ],
)
def test_a_plugin_brings_along_what_it_needs(plugins: dict[str, Any], expected: dict[str, Any]) -> None:
    assert default(job().spec(plugins=plugins))["plugins"] == expected


def test_what_is_said_stays_and_the_job_itself_comes_back() -> None:
    stored = default_job(job().make())
    assert default_job(stored) is stored
    assert effective_job(stored) is stored


def test_another_scheduler_can_be_the_default() -> None:
    assert default_job(job().make(), scheduler="other")["spec"]["schedulerName"] == "other"


def test_a_stored_job_that_was_scaled_to_zero_stays_there() -> None:
    stored = default_job(job().make())
    scaled = {**stored, "spec": {**stored["spec"], "minAvailable": 0}}
    assert effective_job(scaled)["spec"]["minAvailable"] == 0


def test_a_job_that_no_webhook_has_seen_is_read_with_its_defaults() -> None:
    raw = job().spec(minAvailable=0, queue="default", maxRetry=3).make()
    spec = effective_job(raw)["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["minAvailable"]) == (2, 2)
    assert "schedulerName" not in spec  # that one is the gang back end's to know


def test_templates_are_shared_with_the_input() -> None:
    raw = job().make()
    assert effective_job(raw)["spec"]["tasks"][0]["template"] is raw["spec"]["tasks"][0]["template"]


def test_the_patch_leads_from_the_job_to_its_defaults() -> None:
    raw = job().spec(plugins={"mpi": []}, maxRetry=0).make()
    result = copy.deepcopy(raw)
    for operation in default_patch(raw):
        name = operation["path"].removeprefix("/spec/")
        assert (operation["op"] == "replace") == (name in result["spec"])
        result["spec"][name] = operation["value"]
    assert result == default_job(raw)


def test_the_patch_goes_in_the_order_of_volcano() -> None:
    paths = [operation["path"] for operation in default_patch(job().plugins("ray").make())]
    assert paths == [f"/spec/{n}" for n in ("queue", "schedulerName", "maxRetry", "tasks", "minAvailable", "plugins")]


@given(odd_jobs() | anything())
def test_defaulting_never_raises_never_changes_its_input_and_is_done_once(raw: Any) -> None:
    before = copy.deepcopy(raw)
    stored = default_job(raw)
    default_patch(raw)
    assert raw == before
    assert default_job(stored) == stored
    assert effective_job(effective_job(raw)) == effective_job(raw)


CASES = Path(__file__).parents[2] / "data" / "conformance"


def as_the_schema_leaves_it(raw: dict[str, Any]) -> dict[str, Any]:
    """Apply the defaults of the CRD, which come before any webhook."""
    raw["spec"] = {"queue": "default", "maxRetry": 3} | raw["spec"]
    for one in raw["spec"]["tasks"]:
        for container in one["template"]["spec"]["containers"]:
            for port in container.get("ports", ()):
                port.setdefault("protocol", "TCP")
    return raw


def recorded() -> list[Any]:
    paths = sorted(path for path in CASES.glob("*.yaml") if "rejected" not in json.loads(read_record(path)))
    # In ray-no-worker the recorded Job has a command that its YAML does not have.
    return [pytest.param(path, id=path.stem) for path in paths if path.stem != "ray-no-worker"]


def read_record(path: Path) -> str:
    return path.with_suffix(".json").read_text()


@pytest.mark.parametrize("path", recorded())
def test_a_stored_job_equals_the_one_that_volcano_stored(path: Path) -> None:
    (wanted,) = json.loads(read_record(path))["jobs"].values()
    for volume in wanted["spec"].get("volumes", ()):
        volume.pop("volumeClaimName", None)  # the controller fills it in later
    assert default_job(as_the_schema_leaves_it(yaml.safe_load(path.read_text())))["spec"] == wanted["spec"]

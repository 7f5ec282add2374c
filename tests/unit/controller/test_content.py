"""Whatever is in a Job, looking at it never raises and never takes long.

Jobs come from the CRD's own schema, with limits, defaults and nulls, and then anything at all is put anywhere into
them, as it may be found in a cluster whose schema checks are off or older. What is left out: metadata, which the API
server checks for every kind.
"""

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vcjob.admission.validation import validate_create, validate_update, warnings
from vcjob.api.job import PODS_MAX, Phase
from vcjob.cluster.paths import project_file
from vcjob.controller.jobs import JobRecord, make_record
from vcjob.gang.base import Gang
from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.restart import Restart
from vcjob.lifecycle.snapshot import Command, Snapshot
from vcjob.lifecycle.steps import CreatePods

Raw = dict[str, Any]

NOW = 1_900_000_000.0
PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")
WORDS = (
    "",
    "w",
    "master",
    "worker",
    "default0",
    "ein-Name",
    "\u0000",
    "größer",
    "日本語",
    "a" * 300,
    "-1",
    "{{x}}",
    "\ud7ff",
)
NUMBERS = (0, 1, 2, -1, -(2**31), 2**31 - 1, 2**31, 2**63, 10**30)

texts = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
numbers = st.sampled_from(NUMBERS) | st.integers(-3, 5)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@cache
def schema() -> Raw:
    folder = project_file("deploy/crds")
    assert folder is not None
    crd = yaml.safe_load((folder / "jobs.batch.volcano.sh.yaml").read_text())
    found: Raw = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def valid(of: Raw, *, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that a schema allows, as far as types, enums, bounds and required fields go."""
    return st.deferred(lambda: _valid(of, depth))


def _valid(of: Raw, depth: int) -> st.SearchStrategy[Any]:
    made = _plain(of, depth)
    return st.none() | made if of.get("nullable") else made


def _plain(of: Raw, depth: int) -> st.SearchStrategy[Any]:
    if "enum" in of:
        return st.sampled_from(of["enum"])
    if of.get("x-kubernetes-int-or-string"):
        return st.sampled_from((1, "100m", "1Gi", "nonsense"))
    match of.get("type"):
        case "object":
            properties = of.get("properties", {})
            if depth > 9 or not properties:
                inner = of.get("additionalProperties")
                values = valid(inner, depth=depth + 1) if isinstance(inner, dict) else anything
                return st.dictionaries(st.sampled_from(PLUGINS) | texts, values, max_size=2)
            required = set(of.get("required", ()))
            # Large schemas are sparse objects: a Pod template has hundreds of fields.
            names = st.sets(st.sampled_from(sorted(properties)), max_size=5)
            return names.flatmap(
                lambda chosen: st.fixed_dictionaries(
                    {name: valid(properties[name], depth=depth + 1) for name in sorted(chosen | required)}
                )
            )
        case "array":
            return st.lists(valid(of.get("items", {}), depth=depth + 1), min_size=of.get("minItems", 0), max_size=3)
        case "integer":
            low, high = of.get("minimum", -(2**31)), of.get("maximum", 2**31 - 1)
            return st.sampled_from([n for n in (*NUMBERS, 3, 4) if low <= n <= high] or [low])
        case "boolean":
            return st.booleans()
        case "string":
            return texts
        case _:
            return anything


def specs() -> st.SearchStrategy[Raw]:
    """Specs as the schema has them; half of them with tasks that can run, so that more than validation is reached."""
    spec = schema()["properties"]["spec"]
    task = spec["properties"]["tasks"]["items"]
    plugins = st.dictionaries(st.sampled_from(PLUGINS), st.lists(texts, max_size=2), max_size=3)
    wild = st.lists(valid(task), min_size=1, max_size=3)
    tame = st.lists(st.tuples(valid(task), valid(task["properties"]["template"])), min_size=1, max_size=3).map(
        lambda drawn: [_runnable(task, template, index) for index, (task, template) in enumerate(drawn)]
    )
    return st.tuples(valid(spec), wild | tame, plugins).map(
        lambda parts: {**_without(parts[0], "minAvailable"), "tasks": parts[1], "plugins": parts[2]}
    )


def _runnable(task: Raw, template: Raw, index: int) -> Raw:
    pod = {**(template.get("spec") or {}), "containers": [{"name": "c", "image": "i"}]}
    kept = _without(task, "minAvailable", "partitionPolicy", "policies", "dependsOn")
    names = ("master", "worker", "ps")
    return {**kept, "name": names[index], "replicas": index + 1, "template": {"spec": _without(pod, "initContainers")}}


def _without(value: Raw, *names: str) -> Raw:
    return {key: inner for key, inner in value.items() if key not in names}


def job(spec: Any, status: Any = None) -> Raw:
    raw: Raw = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": "j",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    }
    return raw if status is None else {**raw, "status": status}


@st.composite
def spoiled(draw: st.DrawFn, whole: st.SearchStrategy[Any]) -> Any:
    """A value with anything at all in one to three places."""
    value = copy.deepcopy(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places:
            return draw(anything)
        owner, key = draw(st.sampled_from(places))
        owner[key] = draw(anything)
    return value


def _places(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


def live_through(raw: Raw) -> JobRecord:
    """Look at a Job in every phase, with both gang back ends, and render its first Pods."""
    before = msgspec.json.encode(raw)
    record = make_record(raw, None)
    assert msgspec.json.encode(raw) == before, "a Job is never changed in place"
    gangs: tuple[Gang, ...] = (NoGang(gang_scheduler_name="volcano"), VolcanoGang())
    for gang in gangs:
        for phase in (record.status.phase, *Phase):
            status = replace(record.status, phase=phase)
            for command in (None, Command(action="RestartJob", name="c")):
                snapshot = Snapshot(
                    revision=record.revision,
                    status=status,
                    now=NOW,
                    created=record.created,
                    pods={},
                    gang=gang,
                    command=command,
                )
                made = plan(snapshot)
                if made.status is not None:
                    msgspec.json.encode(made.status.write())
                for step in (step for stage in made.stages for step in stage):
                    if isinstance(step, CreatePods):
                        render(record, gang, step)
    return record


def render(record: JobRecord, gang: Gang, step: CreatePods) -> None:
    renderer = PodRenderer(
        record.revision, gang=gang, version=step.version, retry_count=step.retry_count, forwarded=False
    )
    for member in (*step.members[:2], step.members[-1]):
        msgspec.json.encode(renderer.render(member).manifest)


thorough = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@thorough
@given(spec=specs())
def test_no_job_that_the_crd_allows_is_too_much(spec: Raw):
    live_through(job(spec))


@thorough
@given(spec=spoiled(specs()))
def test_no_job_that_the_crd_forbids_is_too_much(spec: Any):
    live_through(job(spec))


@thorough
@given(status=spoiled(valid(schema()["properties"]["status"])))
def test_no_status_is_too_much(status: Any):
    live_through(job({"tasks": [{"name": "w", "replicas": 2, "template": {"spec": {"containers": []}}}]}, status))


@thorough
@given(spec=anything, status=anything)
def test_no_json_is_too_much(spec: Any, status: Any):
    live_through(job(spec, status))


@thorough
@given(old=spoiled(specs()), new=spoiled(specs()))
def test_no_job_is_too_much_for_admission(old: Any, new: Any):
    validate_create(job(new))
    validate_update(job(old), job(new))
    warnings(job(new))


@pytest.mark.parametrize(
    "tasks",
    [
        [2**31 - 1],
        [PODS_MAX + 1],
        [PODS_MAX] * 3,
        [PODS_MAX, 1],
    ],
)
@pytest.mark.parametrize("plugin", [None, *PLUGINS])
def test_more_pods_than_a_cluster_holds_fail_the_job_and_nobody_counts_them(tasks: list[int], plugin: str | None):
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec: Raw = {"tasks": [{"name": f"t{i}", "replicas": n, "template": template} for i, n in enumerate(tasks)]}
    if plugin:
        spec["plugins"] = {plugin: []}
    record = live_through(job(spec))
    assert record.revision.fatal == f"spec: {sum(tasks)} Pods in all tasks; a Job has {PODS_MAX} at most"
    (problem,) = validate_create(job(spec))
    assert str(problem) == record.revision.fatal


def test_as_many_pods_as_a_cluster_holds_are_a_job():
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"tasks": [{"name": "w", "replicas": PODS_MAX, "template": template}], "plugins": {"svc": [], "env": []}}
    record = live_through(job(spec))
    assert record.revision.fatal == ""


@pytest.mark.parametrize(
    "text",
    [
        "w:0-999999999999",
        "w:0-99999999999999999999999999999",
        "w:0-149999,0-149999",
        ",".join(["w:0-140000"] * 9),
        "w:-1",
        "w:5-2",
    ],
)
def test_a_record_of_a_restart_that_nobody_can_have_written_restarts_all(text: str):
    assert Restart.read(text) == Restart(whole=True)


def test_a_job_of_a_mebibyte_is_a_job():
    env = [{"name": f"V{i}", "value": "x" * 1000} for i in range(1000)]
    template = {"spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    spec = {"tasks": [{"name": "w", "replicas": 3, "template": template}], "plugins": {"svc": [], "env": [], "ssh": []}}
    assert live_through(job(spec)).revision.fatal == ""

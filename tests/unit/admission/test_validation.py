"""Which Jobs are refused, with which words; the fragments are those that users of Volcano know."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from vcjob.admission.defaulting import default_job
from vcjob.admission.validation import (
    Severity,
    check_queue,
    denial,
    find_fatal,
    validate_create,
    validate_update,
    warnings,
)
from vcjob.api.rules import RULES

from .builders import RawJob, job, task
from .strategies import anything, odd_jobs

ABORT = {"action": "AbortJob"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CPU = {"requests": {"cpu": "2"}}
NOT_A_DAG = "doesn't form a directed acyclic graph(DAG)"
ONE = {"replicas": 1, "minAvailable": 1}
ZERO = {"replicas": 0, "minAvailable": 0}
FIXED = "job updates may not change fields other than"


def claiming(**fields: Any) -> RawJob:
    """A Job with a claim of which fields were changed; None removes one."""
    claim = {name: value for name, value in (CLAIM | fields).items() if value is not None}
    return job().volumes({"mountPath": "/a", "volumeClaim": claim})


def storage(amount: Any) -> RawJob:
    return claiming(resources={"requests": {"storage": amount}})


def refusal(built: RawJob) -> str:
    return denial(validate_create(default_job(built.make())))


def fields(built: RawJob) -> list[str]:
    return [problem.field for problem in validate_create(built.make())]


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(job(), id="a plain one"),
        pytest.param(job().tasks(task(None), task(None)), id="unnamed tasks"),
        pytest.param(
            job().policies({"events": ["PodEvicted", "PodFailed", "PodEvicted"], **ABORT}), id="event listed twice"
        ),
        pytest.param(
            job().policies({"event": "PodFailed", **ABORT}, {"exitCode": 3, **ABORT}), id="event beside exit code"
        ),
        pytest.param(job().policies({"event": "*", "action": "RestartJob"}), id="any event"),
        pytest.param(job().container(securityContext={"privileged": True}), id="privileged container"),
        pytest.param(job().volumes({"mountPath": "/a", "volumeClaim": CLAIM}), id="new claim"),
        pytest.param(job().volumes({"mountPath": "/a", "volumeClaimName": "data"}), id="claim by name"),
        pytest.param(claiming(accessModes=["ReadOnlyMany", "ReadWriteMany"]), id="several access modes"),
        pytest.param(claiming(storageClassName="", volumeMode="Filesystem"), id="no storage class"),
        pytest.param(storage(1024), id="bytes as a number"),
        pytest.param(job().tasks(task("a"), task("b", dependsOn={"name": ["a"], "iteration": "any"})), id="dependsOn"),
        pytest.param(job().plugins("ssh", "env", "svc"), id="plugins"),
        pytest.param(job().plugins(ssh=["--no-root"]), id="an unknown flag"),
        pytest.param(job().named("my.job"), id="a dot in the name"),
        pytest.param(job().task(topologyPolicy="restricted").container(resources=CPU), id="whole CPUs"),
        pytest.param(job().task(topologyPolicy="none"), id="no topology policy"),
        pytest.param(job().task(replicas=0), id="a task without replicas"),
        pytest.param(job().task(partitionPolicy={"totalPartitions": 2, "partitionSize": 1}), id="partitions"),
        pytest.param(job().spec(minSuccess=2), id="as many successes as replicas"),
        pytest.param(job().spec(runningEstimate="1h30m"), id="running estimate"),
    ],
)
def test_a_good_job_is_let_in(built: RawJob) -> None:
    assert refusal(built) == ""
    assert find_fatal(built.make()) == ""


@pytest.mark.parametrize(
    ("built", "fragment"),
    [
        pytest.param(job().spec(tasks=None), "No task specified in job spec", id="no tasks"),
        pytest.param(job().tasks(), "No task specified in job spec", id="an empty list of tasks"),
        pytest.param(job().tasks(task("a"), task("a")), "duplicated task name a", id="duplicate task"),
        pytest.param(
            job().task(minAvailable=3),
            "'minAvailable' is greater than 'replicas' in task: worker, job: train",
            id="task minimum",
        ),
        pytest.param(
            job().spec(minAvailable=3),
            "job 'minAvailable' should not be greater than total replicas in tasks",
            id="job minimum",
        ),
        pytest.param(job().spec(minAvailable=-1), "should be greater than or equal to 0", id="negative minimum"),
        pytest.param(job().spec(maxRetry=-1), "should be greater than or equal to 0", id="negative retries"),
        pytest.param(job().spec(ttlSecondsAfterFinished=-1), "should be greater than or equal to 0", id="negative ttl"),
        pytest.param(job().task(replicas=-1), "should be greater than or equal to 0", id="negative replicas"),
        pytest.param(job().plugins("nosuch"), "unable to find job plugin: nosuch", id="unknown plugin"),
        pytest.param(job().plugins("pytorhc"), "did you mean pytorch?", id="plugin with a typing error"),
        pytest.param(job().plugins("mpi"), "The specified mpi master task was not found", id="mpi without master"),
        pytest.param(job().plugins("ray"), "no task is named head", id="ray without head"),
        pytest.param(job().named("my.job").plugins("svc"), "cannot be the name of a Service", id="Service name"),
        pytest.param(job().named("1job").plugins("pytorch"), "cannot be the name of a Service", id="digit first"),
        pytest.param(job().named("j" * 64), "the name of a job must be at most 63", id="long job name"),
        pytest.param(job().named("My_Job"), "lower-case letters, digits, dashes and dots", id="capitals in the name"),
        pytest.param(job().named("j" * 60).task(name="tt").plugins("svc"), "63 at most", id="which is a host name"),
        pytest.param(job().volumes({"volumeClaimName": "c"}), "mountPath is required", id="no mount path"),
        pytest.param(
            job().volumes({"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/a", "volumeClaimName": "d"}),
            "duplicated mountPath: /a",
            id="mount path twice",
        ),
        pytest.param(
            job().volumes({"mountPath": "/a"}), "either VolumeClaim or VolumeClaimName must be specified", id="no claim"
        ),
        pytest.param(
            job().volumes({"mountPath": "/a", "volumeClaimName": ""}),
            "either VolumeClaim or VolumeClaimName must be specified",
            id="an empty claim name",
        ),
        pytest.param(
            job().volumes({"mountPath": "/a", "volumeClaimName": "A_b"}), "must be a DNS subdomain", id="claim name"
        ),
        pytest.param(
            job()
            .volumes({"mountPath": "/a", "volumeClaimName": "c"})
            .pod(volumes=[{"name": "v", "emptyDir": {}}])
            .container(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
            "container main of task worker mounts something there already",
            id="mounted by the container too",
        ),
        pytest.param(job().task(dependsOn={"name": ["worker"]}), NOT_A_DAG, id="dependency on itself"),
        pytest.param(
            job().task(dependsOn={"name": ["x"]}), "no task of the job has that name", id="unknown dependency"
        ),
        pytest.param(
            job().tasks(*(task(n, dependsOn={"name": [d]}) for n, d in ("ab", "bc", "ca"))),
            "a waits for b waits for c waits for a",
            id="circle",
        ),
        pytest.param(
            job().container(image=None), "spec.tasks[0].template.spec.containers[0].image: Required value", id="image"
        ),
    ],
)
def test_a_job_that_can_never_work_is_refused_and_fails_at_once(built: RawJob, fragment: str) -> None:
    assert fragment in refusal(built)
    assert fragment in find_fatal(built.make())


@pytest.mark.parametrize(
    ("built", "fragment"),
    [
        pytest.param(
            job().spec(minSuccess=3), "job 'minSuccess' should not be greater than total replicas", id="successes"
        ),
        pytest.param(job().named("j" * 60).task(name="tt"), "create pod with name", id="last Pod's name too long"),
        pytest.param(
            job().policies({"event": "PodFailed", **ABORT}, {"event": "PodFailed", "action": "RestartJob"}),
            "duplicate event PodFailed  across different policy",
            id="duplicate event",
        ),
        pytest.param(
            job().policies({"event": "PodFailed", "exitCode": 3, **ABORT}),
            "must not specify event and exitCode simultaneously",
            id="event and exit code",
        ),
        pytest.param(job().policies(ABORT), "either event and exitCode should be specified", id="no cause"),
        pytest.param(job().policies({"event": "OutOfSync", **ABORT}), "invalid policy event", id="internal event"),
        pytest.param(job().policies({"event": "Nope", **ABORT}), "valid events are [*, PodFailed", id="unknown event"),
        pytest.param(job().policies({"event": "*", "action": "X"}), "invalid policy action", id="unknown action"),
        pytest.param(job().policies({"exitCode": 3, "action": "X"}), "invalid policy action", id="action of a code"),
        pytest.param(job().policies({"exitCode": 0, **ABORT}), "0 is not a valid error code", id="exit code 0"),
        pytest.param(
            job().policies({"exitCode": 3, **ABORT}, {"exitCode": 3, **ABORT}),
            "duplicate exitCode 3",
            id="duplicate code",
        ),
        pytest.param(
            job().policies({"event": "*", **ABORT}, {"event": "PodFailed", **ABORT}),
            "if there's * here, no other policy should be here",
            id="any and another",
        ),
        pytest.param(
            job().policies({"event": "*", "timeout": "soon", **ABORT}), "invalid policy timeout", id="timeout"
        ),
        pytest.param(job().task(policies=[ABORT]), "spec.tasks[0].policies[0]: either event", id="policy of a task"),
        pytest.param(
            job().volumes({"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": CLAIM}), "conflict", id="both"
        ),
        pytest.param(
            claiming(accessModes=["ReadWriteOnce", "Foo"]),
            'spec.volumes[0].volumeClaim.accessModes[1]: "Foo": Unsupported value: it must be one of ReadWriteOnce',
            id="access mode",
        ),
        pytest.param(claiming(accessModes=None), "volumeClaim.accessModes: Required value", id="no access mode"),
        pytest.param(claiming(accessModes=[]), "volumeClaim.accessModes: Required value", id="empty access modes"),
        pytest.param(
            claiming(accessModes=["ReadWriteOncePod", "ReadOnlyMany"]),
            "may not use ReadWriteOncePod with other access modes",
            id="access modes that exclude each other",
        ),
        pytest.param(
            storage("-1Gi"),
            'volumeClaim.resources.requests[storage]: "-1Gi": must be greater than zero',
            id="negative storage",
        ),
        pytest.param(storage(0), "must be greater than zero", id="no storage"),
        pytest.param(storage("much"), "is not a quantity", id="storage without a number"),
        pytest.param(claiming(resources=None), "requests[storage]: Required value", id="storage not said"),
        pytest.param(claiming(volumeMode="Tape"), "volumeClaim.volumeMode", id="volume mode"),
        pytest.param(claiming(volumeMode=""), "volumeClaim.volumeMode", id="empty volume mode"),
        pytest.param(claiming(storageClassName="Fast!"), "volumeClaim.storageClassName", id="storage class"),
        pytest.param(
            job().tasks(task("a"), task("b", dependsOn={"name": ["a"], "iteration": "some"})),
            "iteration must be any or all",
            id="iteration",
        ),
        pytest.param(
            job().spec(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
            "must not be specified simultaneously",
            id="tier twice",
        ),
        pytest.param(
            job().task(topologyPolicy="restricted"),
            "the cpu request isn't an integer in spec.task[0] container[0]",
            id="no CPUs",
        ),
        pytest.param(
            job().task(partitionPolicy={"totalPartitions": 3, "partitionSize": 1}),
            "'replicas' must be equal to 'totalPartitions' x 'partitionSize' in task: worker, which is 3",
            id="partitions",
        ),
        pytest.param(
            job().task(partitionPolicy={"totalPartitions": 0, "partitionSize": 1}),
            "'totalPartitions' must be greater than 0",
            id="no partition",
        ),
        pytest.param(
            job().task(partitionPolicy={"totalPartitions": 2, "partitionSize": 1, "minPartitions": 2}, minAvailable=1),
            "'minAvailable' must be equal to 'minPartitions' x 'partitionSize'",
            id="least partitions",
        ),
        pytest.param(job().spec(runningEstimate="long"), "is not a duration", id="running estimate"),
    ],
)
def test_a_bad_job_is_refused_but_runs_where_it_is_already(built: RawJob, fragment: str) -> None:
    assert fragment in refusal(built)
    assert find_fatal(built.make()) == ""


def test_a_repeated_task_name_ends_the_search_in_the_tasks() -> None:
    assert fields(job().tasks(task("a"), task("a"), task("b", template={}))) == ["spec.tasks[1].name"]


def test_without_an_mpi_master_everything_else_is_told_too() -> None:
    found = fields(job().plugins("mpi", "nosuch").spec(minAvailable=9))
    assert found == ["spec.minAvailable", "spec.plugins", "spec.plugins.mpi"]


def test_problems_of_different_places_are_told_together() -> None:
    built = job().spec(minAvailable=9).policies(ABORT).volumes({"mountPath": "/a"})
    assert fields(built) == ["spec.minAvailable", "spec.policies[0]", "spec.volumes[0]"]


def test_a_refusal_names_field_value_and_rule() -> None:
    assert refusal(job().spec(minAvailable=3)) == (
        "spec.minAvailable: 3: job 'minAvailable' should not be greater than total replicas in tasks, which is 2"
    )


def test_a_claim_that_the_operator_has_named_is_not_fatal() -> None:
    built = job().volumes({"mountPath": "/a", "volumeClaim": CLAIM, "volumeClaimName": "train-pvc-x"})
    assert find_fatal(built.make()) == ""


def test_a_wrong_type_is_named_by_its_field() -> None:
    (problem,) = validate_create(job().task(replicas="many").make())
    assert (problem.field, problem.severity) == ("spec.tasks[0].replicas", Severity.FATAL)


CASES = Path(__file__).parents[2] / "data" / "conformance"


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in sorted(CASES.glob("*.yaml"))])
def test_exactly_the_jobs_that_volcano_refused_are_refused(path: Path) -> None:
    refused = "rejected" in json.loads(path.with_suffix(".json").read_text())
    raw = yaml.safe_load(path.read_text())
    assert bool(validate_create(default_job(raw))) is refused


# Updates


def change(built: RawJob, **spec: Any) -> str:
    old = default_job(built.make())
    return denial(validate_update(old, {**old, "spec": {**old["spec"], **spec}}))


def stored_tasks(built: RawJob, *changes: dict[str, Any]) -> list[Any]:
    tasks = default_job(built.make())["spec"]["tasks"]
    return [one | changed for one, changed in zip(tasks, changes, strict=True)]


@pytest.mark.parametrize(
    ("built", "spec"),
    [
        pytest.param(job(), {}, id="nothing"),
        pytest.param(job(), {"minAvailable": 1}, id="the minimum"),
        pytest.param(job(), {"tasks": stored_tasks(job(), {"replicas": 5})}, id="replicas"),
        pytest.param(job(), {"tasks": stored_tasks(job(), ONE), "minAvailable": 1}, id="fewer"),
        pytest.param(job(), {"tasks": stored_tasks(job(), ZERO), "minAvailable": 0}, id="none"),
        pytest.param(job(), {"priorityClassName": "high"}, id="priority"),
        pytest.param(
            job().volumes({"mountPath": "/a", "volumeClaim": CLAIM}),
            {"volumes": [{"mountPath": "/a", "volumeClaim": CLAIM, "volumeClaimName": "made"}]},
            id="the operator names a claim",
        ),
        pytest.param(
            job().container(resources={"requests": {"cpu": "1"}}),
            {"tasks": stored_tasks(job().container(resources={"requests": {"cpu": "1000m"}}), {})},
            id="another spelling of an amount",
        ),
        pytest.param(
            job().spec(minSuccess=2),
            {"tasks": stored_tasks(job(), ONE), "minAvailable": 1},
            id="fewer replicas than successes",
        ),
    ],
)
def test_a_job_may_change(built: RawJob, spec: dict[str, Any]) -> None:
    assert change(built, **spec) == ""


@pytest.mark.parametrize(
    ("spec", "fragment"),
    [
        pytest.param(
            {"tasks": stored_tasks(job(), {"replicas": 1})},
            "'minAvailable' must be <= 'replicas' in task: worker",
            id="task",
        ),
        pytest.param({"minAvailable": 3}, "job 'minAvailable' must not be greater than total replicas", id="job"),
        pytest.param({"minAvailable": -1}, "should be greater than or equal to 0", id="negative minimum"),
        pytest.param(
            {"tasks": stored_tasks(job(), {"replicas": -1})}, "should be greater than or equal to 0", id="negative"
        ),
        pytest.param(
            {"tasks": [*stored_tasks(job(), {}), task("b")]},
            "job updates may not add or remove tasks",
            id="a task more",
        ),
        pytest.param({"tasks": stored_tasks(job(), {"name": "other"})}, FIXED, id="a task's name"),
        pytest.param({"queue": "other"}, f"spec.queue: {FIXED}", id="queue"),
        pytest.param({"maxRetry": 9}, f"spec.maxRetry: {FIXED}", id="retries"),
        pytest.param({"plugins": {"svc": []}}, f"spec.plugins: {FIXED}", id="plugins"),
        pytest.param({"ttlSecondsAfterFinished": 5}, FIXED, id="time to live"),
        pytest.param({"policies": [{"event": "*", **ABORT}]}, FIXED, id="policies"),
        pytest.param({"volumes": [{"mountPath": "/a", "volumeClaimName": "c"}]}, FIXED, id="volumes"),
        pytest.param(
            {"tasks": stored_tasks(job().container(image="other"), {})},
            f"spec.tasks[0].template.spec.containers[0].image: {FIXED}",
            id="image",
        ),
        pytest.param(
            {"tasks": stored_tasks(job(), {"partitionPolicy": {"totalPartitions": 3, "partitionSize": 1}})},
            "'replicas' must be equal to",
            id="partitions",
        ),
        pytest.param(
            {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "x"}},
            "must not be specified simultaneously",
            id="tier",
        ),
    ],
)
def test_a_job_may_not_change(spec: dict[str, Any], fragment: str) -> None:
    assert fragment in change(job(), **spec)


def test_a_job_may_not_grow_until_a_pods_name_is_too_long() -> None:
    built = job().named("j" * 55).task(name="ttttt")
    assert change(built, tasks=stored_tasks(built, {"replicas": 10})) == ""
    assert "create pod with name" in change(built, tasks=stored_tasks(built, {"replicas": 1000}))


def test_metadata_may_change_whatever_the_spec_is() -> None:
    old = job().spec(tasks=None).make()
    assert validate_update(old, {**old, "metadata": {**old["metadata"], "finalizers": []}}) == ()


# Queues


@pytest.mark.parametrize(
    ("queue", "name", "children", "fragment"),
    [
        pytest.param({"status": {"state": "Open"}}, "q", 0, None, id="open"),
        pytest.param({}, "q", 0, None, id="never looked at by a queue controller"),
        pytest.param(None, "q", 0, "unable to find job queue: q", id="missing"),
        pytest.param(
            {"status": {"state": "Closed"}}, "q", 0, "with state `Open`, queue `q` status is `Closed`", id="closed"
        ),
        pytest.param({"status": {"state": "Open"}}, "root", 0, "can not submit job to root queue", id="root"),
        pytest.param(
            {"status": {"state": "Open"}}, "q", 2, "to leaf queue, queue `q` has 2 child queues", id="not a leaf"
        ),
    ],
)
def test_a_queue_takes_a_job_or_says_why_not(queue: Any, name: str, children: int, fragment: str | None) -> None:
    problem = check_queue(queue, name, children=children)
    assert (problem is None) if fragment is None else (problem is not None and fragment in problem.message)


def test_a_problem_names_its_field_once() -> None:
    (problem,) = validate_create(default_job(job().named("my.job").plugins("svc").make()))
    assert str(problem).startswith("spec.plugins.svc: the Job name my.job cannot be the name of a Service")


def test_a_negative_number_is_a_problem_where_it_stands() -> None:
    (problem,) = validate_create(default_job(job().task(replicas=-1).make()))
    assert (problem.field, problem.value) == ("spec.tasks[0].replicas", -1)


METADATA: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"annotations": {"ä": "ö"}}, 'metadata.annotations: "ä": a key must be'),
    "key of a label": ({"labels": {"a b": ""}}, 'metadata.labels: "a b": a key must be'),
    "capitals in the domain": ({"labels": {"A.b/c": ""}}, 'metadata.labels: "A.b/c": a key must be'),
    "value of a label": ({"labels": {"a": "c d"}}, 'metadata.labels[a]: "c d": a label\'s value'),
    "much": ({"annotations": {"a": "x" * 2**18}}, "metadata.annotations: Too long"),
    "namespace": ({"namespace": "a.b"}, 'metadata.namespace: "a.b": a namespace must be a DNS label'),
    "prefix": ({"generateName": "A_"}, 'metadata.generateName: "A_"'),
    "finalizer": ({"finalizers": ["a/b", "c d"]}, 'metadata.finalizers[1]: "c d"'),
    "owner": ({"ownerReferences": [{"kind": "X", "name": "x", "uid": "u"}]}, "ownerReferences[0].apiVersion: Required"),
}


@pytest.mark.parametrize(("metadata", "fragment"), [pytest.param(*case, id=title) for title, case in METADATA.items()])
def test_metadata_is_judged_as_by_the_api_server(metadata: dict[str, Any], fragment: str) -> None:
    raw = job().make()
    raw["metadata"] |= metadata
    assert fragment in denial(validate_create(raw))
    assert find_fatal(raw) == ""  # the API server has stored it, so it is none of the operator's business


def test_usual_metadata_is_let_in() -> None:
    raw = job().make()
    raw["metadata"] |= {
        "annotations": {"Example.com/Note": "ä", "made-by": "me"},
        "labels": {"example.com/a_b": "C.d", "x": ""},
        "finalizers": ["example.com/keep"],
        "generateName": "train-",
    }
    assert validate_create(raw) == ()


# What the CRDs' CEL rules refuse, by model and place among its rules; rules about changes are judged by `change`.
BY_RULE = {
    ("JobSpec", 0): job().spec(tasks=None),
    ("JobSpec", 1): job().spec(minAvailable=3),
    ("JobSpec", 2): job().volumes({"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": CLAIM}),
    ("Task", 0): job().task(minAvailable=3),
    ("Task", 1): job().task(partitionPolicy={"totalPartitions": 3, "partitionSize": 1}),
    ("LifecyclePolicy", 0): job().policies({"event": "PodFailed", "exitCode": 3, **ABORT}),
    ("LifecyclePolicy", 1): job().policies(ABORT),
    ("LifecyclePolicy", 2): job().policies({"exitCode": 0, **ABORT}),
    ("LifecyclePolicy", 3): job().policies({"event": "PodFailed", "action": "Explode"}),
    ("Volume", 0): job().volumes({"mountPath": "/a"}),
    ("NetworkTopology", 0): job().spec(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
}


def test_every_rule_of_the_crd_about_a_new_job_has_its_counterpart() -> None:
    rules = {
        (model, place): rule
        for model, found in RULES.items()
        for place, rule in enumerate(found)
        if "oldSelf" not in rule["rule"] or rule.get("optionalOldSelf")
    }
    assert rules.keys() == BY_RULE.keys()
    assert [key for key, built in BY_RULE.items() if not refusal(built)] == []


@pytest.mark.parametrize("key", [key for key in BY_RULE if key[0] == "LifecyclePolicy"])
def test_the_rules_of_the_crd_name_the_choices_that_admission_names(key: tuple[str, int]) -> None:
    model, place = key
    message, said = RULES[model][place]["message"], refusal(BY_RULE[key])
    assert all(part in said for part in message.split("; "))


# Warnings


@pytest.mark.parametrize(
    ("built", "fragment"),
    [
        pytest.param(
            job().policies({"event": "PodPending", **ABORT}), "PodPending fires only with a timeout", id="pending"
        ),
        pytest.param(
            job().policies({"event": "PodPending", "timeout": "-5s", **ABORT}),
            "spec.policies[0]: PodPending fires only with a timeout above 0, and -5s is not",
            id="pending, in the past",
        ),
        pytest.param(
            job().policies({"event": "PodPending", "timeout": "0s", **ABORT}), "and 0s is not", id="pending, at once"
        ),
        pytest.param(
            job().policies({"event": "PodFailed", "timeout": "-1m", **ABORT}),
            "spec.policies[0].timeout: -1m is in the past, so AbortJob is done at once",
            id="a timeout in the past",
        ),
        pytest.param(
            job().task(policies=[{"exitCode": 3, "timeout": "-5s", **ABORT}]),
            "spec.tasks[0].policies[0].timeout: -5s is in the past",
            id="a timeout in the past of a code",
        ),
        pytest.param(
            job().policies({"event": "JobUpdated", **ABORT}), "JobUpdated is accepted and never fires", id="updated"
        ),
        pytest.param(job().task(replicas=0), "task worker has no replicas", id="no replicas"),
        pytest.param(
            job().tasks(task("a"), task("b", dependsOn={"name": ["a"]})), "lower spec.minAvailable", id="gang"
        ),
        pytest.param(job().plugins(svc=["--nope"]), 'argument "--nope" is ignored', id="flag"),
    ],
)
def test_what_is_odd_is_let_in_with_a_warning(built: RawJob, fragment: str) -> None:
    raw = default_job(built.make())
    assert validate_create(raw) == ()
    assert any(fragment in warning for warning in warnings(raw))


def test_a_job_of_many_oddities_has_some_warnings_and_their_number() -> None:
    built = job().tasks(task("a"), *(task(f"b{index}", dependsOn={"name": ["a"]}) for index in range(100)))
    found = warnings(default_job(built.make()))
    assert (len(found), found[-1]) == (21, "and 80 more warnings")


@pytest.mark.parametrize("timeout", ["5s", "0s"])
def test_a_usual_timeout_has_no_warning(timeout: str) -> None:
    assert warnings(default_job(job().policies({"event": "PodFailed", "timeout": timeout, **ABORT}).make())) == ()


def test_a_plain_job_has_no_warnings() -> None:
    assert warnings(default_job(job().make())) == ()


# Laws


@given(odd_jobs() | anything())
def test_no_input_makes_validation_raise(raw: Any) -> None:
    for problem in validate_create(raw):
        assert problem.message
        assert str(problem)
    find_fatal(raw)
    warnings(raw)


@given(odd_jobs() | anything(), odd_jobs() | anything())
def test_no_change_makes_validation_raise(old: Any, new: Any) -> None:
    validate_update(old, new)
    assert validate_update(new, new) == ()


@given(odd_jobs())
def test_what_is_fatal_is_refused(raw: Any) -> None:
    """The controller never fails a Job that admission lets in."""
    if find_fatal(raw):
        assert validate_create(raw)

"""What users meet when they create and change Jobs: schema and webhook together, through a real API server.

The messages hold the fragments that Volcano's own end-to-end tests look for.
"""

import json

import pytest
from tests.integration.harness.api import EVENTS, JOBS, PODS, QUEUES, Api, Object, Refused, eventually
from tests.integration.harness.jobs import job, task
from tests.integration.harness.kubectl import Kubectl
from tests.integration.harness.webhook import WebhookProcess
from tests.integration.webhook.conftest import queue

pytestmark = [pytest.mark.xdist_group("webhook"), pytest.mark.usefixtures("webhook")]

ABORT = {"action": "AbortJob"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
AT_LEAST_0 = "should be greater than or equal to 0"


def policies(*entries: Object) -> Object:
    return job("j", task("w"), policies=list(entries))


def volumes(*entries: Object) -> Object:
    return job("j", task("w"), volumes=list(entries))


def negative(**fields: int) -> Object:
    return job("j", task("w"), **fields)


REFUSED = [
    pytest.param(job("j", task("a"), task("a")), ["duplicated task name"], id="duplicate task"),
    pytest.param(negative(minAvailable=-1), ["spec.minAvailable", AT_LEAST_0], id="negative minAvailable"),
    pytest.param(negative(maxRetry=-1), ["spec.maxRetry", AT_LEAST_0], id="negative maxRetry"),
    pytest.param(negative(ttlSecondsAfterFinished=-1), ["spec.ttlSecondsAfterFinished", AT_LEAST_0], id="negative ttl"),
    pytest.param(job("j", task("w", -1)), ["spec.tasks[0].replicas", AT_LEAST_0], id="negative replicas"),
    pytest.param(
        job("j", task("w", minAvailable=-1)), ["spec.tasks[0].minAvailable", AT_LEAST_0], id="negative task minimum"
    ),
    pytest.param(job("j"), ["No task specified in job spec"], id="no tasks"),
    pytest.param(
        job("j", task("w", 1, minAvailable=2)), ["'minAvailable' is greater than 'replicas' in task"], id="task minimum"
    ),
    pytest.param(
        job("j", task("w", 2), minAvailable=3),
        ["job 'minAvailable' should not be greater than total replicas"],
        id="job minimum",
    ),
    pytest.param(job("j", task("Task_1")), ["spec.tasks[0].name", "should match"], id="illegal task name"),
    pytest.param(job("j", task("w"), plugins={"nosuch": []}), ["unable to find job plugin: nosuch"], id="plugin"),
    pytest.param(
        policies({"event": "PodFailed", **ABORT}, {"event": "PodFailed", "action": "RestartJob"}),
        ["duplicate event PodFailed"],
        id="event in two policies",
    ),
    pytest.param(
        policies({"event": "PodFailed", "exitCode": 3, **ABORT}),
        ["must not specify event and exitCode simultaneously"],
        id="event and exit code",
    ),
    pytest.param(policies(ABORT), ["either event and exitCode should be specified"], id="neither event nor exit code"),
    pytest.param(policies({"event": "Nothing", **ABORT}), ["spec.policies[0].event"], id="invalid event"),
    pytest.param(
        policies({"event": "PodFailed", "action": "Nothing"}),
        ["spec.policies[0].action", "invalid policy action; valid actions are [AbortJob, RestartJob"],
        id="invalid action",
    ),
    pytest.param(policies({"exitCode": 0, **ABORT}), ["0 is not a valid error code"], id="exit code 0"),
    pytest.param(
        policies({"exitCode": 3, **ABORT}, {"exitCode": 3, **ABORT}), ["duplicate exitCode 3"], id="exit code twice"
    ),
    pytest.param(
        policies({"event": "*", **ABORT}, {"event": "PodFailed", **ABORT}),
        ["if there's * here, no other policy should be here"],
        id="any event beside another",
    ),
    pytest.param(
        job("j", task("w", policies=[{"exitCode": 0, **ABORT}])), ["0 is not a valid error code"], id="policy of a task"
    ),
    pytest.param(volumes({"volumeClaimName": "c"}), ["mountPath"], id="no mount path"),
    pytest.param(
        volumes({"mountPath": "", "volumeClaimName": "c"}),
        ["spec.volumes[0].mountPath", "should be at least 1 chars long"],
        id="empty mount path",
    ),
    pytest.param(
        volumes({"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/a", "volumeClaimName": "d"}),
        ["duplicated mountPath: /a"],
        id="mount path twice",
    ),
    pytest.param(
        volumes({"mountPath": "/a"}), ["either VolumeClaim or VolumeClaimName must be specified"], id="no claim"
    ),
    pytest.param(
        volumes({"mountPath": "/a", "volumeClaimName": ""}),
        ["either VolumeClaim or VolumeClaimName must be specified"],
        id="empty claim name",
    ),
    pytest.param(job("j", task("w"), queue="nosuch"), ["unable to find job queue: nosuch"], id="unknown queue"),
    pytest.param(job("j", task("w"), queue="root"), ["can not submit job to root queue"], id="root queue"),
    pytest.param(
        job("j", task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        ["doesn't form a directed acyclic graph(DAG)"],
        id="circle of tasks",
    ),
    pytest.param(
        job("j", task("w"), plugins={"mpi": []}),
        ["The specified mpi master task was not found"],
        id="no mpi master",
    ),
    pytest.param(
        job("j", task("w", containers=[{"name": "main"}])),
        ["spec.tasks[0].template.spec.containers[0].image: Required value"],
        id="no image",
    ),
    pytest.param(
        job(
            "j",
            task("w", containers=[{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1 core"}}}]),
        ),
        ["spec.tasks[0].template.spec.containers[0].resources.requests.cpu"],
        id="unit of CPU",
    ),
    pytest.param(
        job(
            "j",
            task("w", containers=[{"name": "m", "image": "i", "resources": {"requests": {"memory": "1 MB"}}}]),
        ),
        ["spec.tasks[0].template.spec.containers[0].resources.requests.memory"],
        id="unit of memory",
    ),
    pytest.param(
        volumes({"mountPath": "/a", "volumeClaim": {**CLAIM, "accessModes": ["Foo"]}}),
        ["spec.volumes[0].volumeClaim.accessModes[0]", "it must be one of ReadWriteOnce"],
        id="access mode",
    ),
    pytest.param(
        volumes({"mountPath": "/a", "volumeClaim": {**CLAIM, "resources": {"requests": {"storage": "-1Gi"}}}}),
        ["spec.volumes[0].volumeClaim.resources.requests[storage]", "must be greater than zero"],
        id="negative storage",
    ),
    pytest.param(job("my.job", task("w"), plugins={"svc": []}), ["cannot be the name of a Service"], id="job name"),
]


@pytest.mark.parametrize(("body", "fragments"), REFUSED)
async def test_a_bad_job_is_refused_with_the_reason(api: Api, namespace: str, body: Object, fragments: list[str]):
    with pytest.raises(Refused) as refused:
        await api.create(JOBS, body, namespace)
    assert [fragment for fragment in fragments if fragment not in refused.value.message] == []
    assert refused.value.code == 422
    assert await api.list(JOBS, namespace) == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(job("j", task("w", 2)), id="a plain one"),
        pytest.param(job("j", task("a"), task("b", dependsOn={"name": ["a"]})), id="dependsOn"),
        pytest.param(
            policies({"events": ["PodEvicted", "PodFailed", "PodEvicted"], "action": "TerminateJob"}), id="event twice"
        ),
        pytest.param(
            job("j", task("w", containers=[{"name": "m", "image": "i", "securityContext": {"privileged": True}}])),
            id="privileged container",
        ),
        pytest.param(volumes({"mountPath": "/a", "volumeClaim": CLAIM}), id="a new claim"),
        pytest.param(job("j", task("w", 0), minAvailable=0), id="a task of nobody"),
    ],
)
async def test_a_good_job_is_let_in(api: Api, namespace: str, body: Object):
    assert (await api.create(JOBS, body, namespace))["spec"]["queue"] == "default"


# Queues


async def test_a_job_waits_at_no_closed_queue(api: Api, namespace: str):
    await api.create(QUEUES, queue("closed"))
    await api.set_status(QUEUES, "closed", {"state": "Closed"})
    with pytest.raises(
        Refused, match="can only submit job to queue with state `Open`, queue `closed` status is `Closed`"
    ):
        await api.create(JOBS, job("j", task("w"), queue="closed"), namespace)


async def test_a_job_goes_to_leaf_queues_only(api: Api, namespace: str):
    await api.create(QUEUES, queue("family"))
    await api.create(QUEUES, queue("child", parent="family"))
    with pytest.raises(Refused, match="can only submit job to leaf queue, queue `family` has 1 child queues"):
        await api.create(JOBS, job("j", task("w"), queue="family"), namespace)
    await api.create(JOBS, job("k", task("w"), queue="child"), namespace)


async def test_a_queue_that_was_made_or_opened_a_moment_ago_takes_jobs(api: Api, namespace: str):
    await api.create(JOBS, job("first", task("w")), namespace)  # the webhook has read the Queues now
    await api.create(QUEUES, queue("young"))
    await api.create(JOBS, job("second", task("w"), queue="young"), namespace)
    await api.set_status(QUEUES, "young", {"state": "Closed"})
    numbers = iter(range(100))

    async def refused() -> bool:  # a closed Queue may be taken for open for a moment
        try:
            await api.create(JOBS, job(f"late-{next(numbers)}", task("w"), queue="young"), namespace)
        except Refused:
            return True
        return False

    await eventually(refused, timeout_s=60, every_s=1.0)
    await api.set_status(QUEUES, "young", {"state": "Open"})
    await api.create(JOBS, job("fourth", task("w"), queue="young"), namespace)


# Defaults


async def created(api: Api, namespace: str, body: Object) -> Object:
    spec: Object = (await api.create(JOBS, body, namespace))["spec"]
    return spec


async def test_a_job_gets_queue_scheduler_retries_and_names(api: Api, namespace: str):
    unnamed = {key: value for key, value in task("x", 2).items() if key != "name"}
    spec = await created(api, namespace, job("j", unnamed, unnamed))
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        4,
    )
    assert [(t["name"], t["maxRetry"], t["minAvailable"]) for t in spec["tasks"]] == [
        ("default0", 3, 2),
        ("default1", 3, 2),
    ]


@pytest.mark.parametrize(
    ("tasks", "minimum"),
    [
        pytest.param([task("a", 2), task("b", 3)], 5, id="of all replicas"),
        pytest.param([task("a", 2, minAvailable=1), task("b", 3)], 4, id="of the tasks' minimums"),
    ],
)
async def test_the_minimum_is_the_sum(api: Api, namespace: str, tasks: list[Object], minimum: int):
    assert (await created(api, namespace, job("j", *tasks)))["minAvailable"] == minimum


@pytest.mark.parametrize(
    ("plugins", "wanted"),
    [
        pytest.param({"tensorflow": []}, {"tensorflow": [], "svc": []}, id="tensorflow"),
        pytest.param({"pytorch": ["--port=1"]}, {"pytorch": ["--port=1"], "svc": []}, id="pytorch"),
        pytest.param({"mpi": ["--master=m"]}, {"mpi": ["--master=m"], "svc": [], "ssh": []}, id="mpi"),
        pytest.param({"ray": ["--head=m"]}, {"ray": ["--head=m"], "svc": []}, id="ray"),
        pytest.param(
            {"mpi": ["--master=m"], "svc": ["--publish-not-ready-addresses=true"], "ssh": ["--no-root"]},
            {"mpi": ["--master=m"], "svc": ["--publish-not-ready-addresses=true"], "ssh": ["--no-root"]},
            id="arguments are kept",
        ),
        pytest.param({"env": []}, {"env": []}, id="env brings nothing along"),
    ],
)
async def test_plugins_bring_along_what_they_need(api: Api, namespace: str, plugins: Object, wanted: Object):
    body = job("j", task("m"), task("worker"), plugins=plugins)
    assert (await created(api, namespace, body))["plugins"] == wanted


async def test_pods_on_the_hosts_network_find_services(api: Api, namespace: str):
    spec = await created(api, namespace, job("j", task("w", pod={"hostNetwork": True})))
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


async def test_what_a_job_says_itself_stays(api: Api, namespace: str):
    await api.create(QUEUES, queue(f"of-{namespace}"))
    said = {"queue": f"of-{namespace}", "schedulerName": "mine", "maxRetry": 7, "minAvailable": 1}
    spec = await created(api, namespace, job("j", task("w", 3, minAvailable=2, maxRetry=9), **said))
    assert {name: spec[name] for name in said} == said
    assert (spec["tasks"][0]["minAvailable"], spec["tasks"][0]["maxRetry"]) == (2, 9)


# Changes


async def test_size_and_priority_may_change(api: Api, namespace: str):
    await api.create(JOBS, job("j", task("w", 2)), namespace)
    change = [
        {"op": "replace", "path": "/spec/minAvailable", "value": 1},
        {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3},
        {"op": "add", "path": "/spec/priorityClassName", "value": "high"},
    ]
    spec = (await api.patch(JOBS, "j", change, namespace, kind="json"))["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["replicas"]) == (1, 3)


async def test_a_job_scaled_to_nothing_stays_so(api: Api, namespace: str):
    await api.create(JOBS, job("j", task("w", 2)), namespace)
    change = [
        {"op": "replace", "path": "/spec/minAvailable", "value": 0},
        {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 0},
        {"op": "replace", "path": "/spec/tasks/0/minAvailable", "value": 0},
    ]
    assert (await api.patch(JOBS, "j", change, namespace, kind="json"))["spec"]["minAvailable"] == 0


FIXED = "job updates may not change fields other than"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        pytest.param(
            [{"op": "replace", "path": "/spec/minAvailable", "value": 9}],
            "be greater than total replicas",
            id="minimum",
        ),
        pytest.param(
            [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 0}],
            "'minAvailable' is greater than 'replicas' in task: w; one that was left out was filled in",
            id="fewer than the filled in minimum",
        ),
        pytest.param(
            [{"op": "add", "path": "/spec/tasks/-", "value": task("new")}],
            "job updates may not add or remove tasks",
            id="another task",
        ),
        pytest.param([{"op": "replace", "path": "/spec/queue", "value": "other"}], FIXED, id="queue"),
        pytest.param([{"op": "replace", "path": "/spec/maxRetry", "value": 4}], FIXED, id="retries"),
        pytest.param([{"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": 4}], FIXED, id="ttl"),
        pytest.param(
            [{"op": "add", "path": "/spec/policies", "value": [{"event": "*", **ABORT}]}], FIXED, id="policies"
        ),
        pytest.param([{"op": "add", "path": "/spec/plugins", "value": {"env": []}}], FIXED, id="plugins"),
        pytest.param([{"op": "replace", "path": "/spec/tasks/0/name", "value": "other"}], FIXED, id="name of a task"),
        pytest.param(
            [{"op": "replace", "path": "/spec/tasks/0/template/spec/containers/0/image", "value": "other:1"}],
            FIXED,
            id="image",
        ),
    ],
)
async def test_nothing_else_may(api: Api, namespace: str, change: list[Object], fragment: str):
    await api.create(JOBS, job("j", task("w", 2), task("v", 2)), namespace)
    with pytest.raises(Refused) as refused:
        await api.patch(JOBS, "j", change, namespace, kind="json")
    assert fragment in refused.value.message


async def test_labels_and_status_of_any_job_may_change(api: Api, namespace: str):
    await api.create(JOBS, job("j", task("w")), namespace)
    await api.patch(JOBS, "j", {"metadata": {"labels": {"a": "b"}, "finalizers": ["test.example/x"]}}, namespace)
    await api.set_status(JOBS, "j", {"state": {"phase": "Running"}}, namespace)
    await api.delete(JOBS, "j", namespace)
    await api.patch(JOBS, "j", {"metadata": {"finalizers": None}}, namespace)
    assert await api.find(JOBS, "j", namespace) is None


# As kubectl shows it


async def test_kubectl_shows_warnings_once_and_the_job_is_made(kubectl: Kubectl):
    body = job("odd", task("w"), plugins={"svc": ["--wrong"]})
    answer = await kubectl.attempt("create", "-f", "-", stdin=json.dumps(body))
    assert answer.code == 0
    assert 'Warning: spec.plugins.svc: argument "--wrong" is ignored' in answer.err
    assert answer.err.count("Warning") == 1


async def test_kubectl_shows_which_webhook_denied_and_why(kubectl: Kubectl):
    answer = await kubectl.attempt("create", "-f", "-", stdin=json.dumps(job("j", task("w"), queue="gone")))
    assert answer.code == 1
    assert 'admission webhook "validatejob.volcano.sh" denied the request: spec.queue: "gone": unable to' in answer.err


async def test_a_dry_run_shows_the_defaults_and_leaves_nothing(api: Api, kubectl: Kubectl, namespace: str):
    body = json.dumps(job("dry", task("w", 2)))
    shown = json.loads(await kubectl("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=body))
    assert shown["spec"]["minAvailable"] == 2
    refused = await kubectl.attempt(
        "create", "-f", "-", "--dry-run=server", stdin=json.dumps(job("dry", task("w"), queue="gone"))
    )
    assert "unable to find job queue" in refused.err
    for resource in (JOBS, PODS, EVENTS):
        assert await api.list(resource, namespace) == []


@pytest.mark.parametrize("side", ["--server-side=true", "--server-side=false"])
async def test_an_applied_job_can_be_applied_again_and_scaled(kubectl: Kubectl, side: str):
    for replicas in (2, 2, 3):
        body = job("again", task("master"), task("worker", replicas), plugins={"pytorch": []})
        await kubectl("apply", side, "-f", "-", stdin=json.dumps(body))
    assert await kubectl("get", "vcjob", "again", "-o", "jsonpath={.spec.tasks[*].replicas}") == "1 3"


# What admission is not asked about


async def test_pods_are_none_of_its_business(api: Api, namespace: str):
    for path in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        found = await api.call("GET", f"/apis/admissionregistration.k8s.io/v1/{path}/local")
        assert all("pods" not in rule["resources"] for hook in found["webhooks"] for rule in hook["rules"])
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "i"}], "schedulerName": "volcano"}}
    await api.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}, namespace)


async def test_what_was_decided_is_counted_and_logged(api: Api, namespace: str, webhook: WebhookProcess):
    with pytest.raises(Refused):
        await api.create(JOBS, job("seen", task("w"), queue="gone"), namespace)

    async def told() -> bool:
        _, page = await webhook.get(webhook.metrics_url + "/metrics")
        lines = [line for line in page.splitlines() if line.startswith("vcjob_admission_reviews_total{")]
        denied = next(line for line in lines if 'outcome="denied",webhook="/jobs/validate"' in line)
        return not denied.endswith(" 0.0")

    await eventually(told)
    line = next(line for line in webhook.last_lines(200).splitlines() if f"object={namespace}/seen" in line)
    assert "user=kubernetes-admin" in line

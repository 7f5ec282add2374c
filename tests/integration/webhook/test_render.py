"""`vcjob render` refuses the fields that the API server refuses, under the same paths."""

import asyncio
import json
import re
from copy import deepcopy
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.harness.api import JOBS, Api, Object, Refused
from tests.integration.harness.jobs import job, task

from vcjob.cli.render import render

pytestmark = [pytest.mark.xdist_group("webhook"), pytest.mark.usefixtures("webhook")]

BASE = job("j", task("w", 1), policies=[{"event": "PodFailed", "action": "AbortJob"}], plugins={"env": []})


def changed(path: str, value: Any) -> Object:
    """The Job with a value set at a path such as `spec.tasks.0.replicass`."""
    body = deepcopy(BASE)
    *parents, last = path.split(".")
    place: Any = body
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return body


def rendered(body: Object) -> Result:
    return CliRunner().invoke(render, ["-"], input=json.dumps(body))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BASE, id="a good one"),
        pytest.param(changed("sepc", {}), id="of the Job"),
        pytest.param(changed("metadata.lables", {}), id="of its metadata"),
        pytest.param(changed("spec.taskss", []), id="of the spec"),
        pytest.param(changed("spec.tasks.0.replicass", 2), id="of a task"),
        pytest.param(changed("spec.policies.0.exitcode", 2), id="of a policy"),
        pytest.param(changed("spec.tasks.0.template.spec.containrs", []), id="of a Pod"),
        pytest.param(changed("spec.tasks.0.template.metadata", {"creationTimestamp": None}), id="of a Pod's metadata"),
        pytest.param(changed("spec.tasks.0.template.spec.containers.0.img", "x"), id="of a container"),
        pytest.param(changed("spec.volumes", [{"mountPath": "/a", "volumeClaim": {"sise": 1}}]), id="of a claim"),
        pytest.param(changed("spec.plugins.svcc", None), id="keys of maps are free"),
    ],
)
async def test_unknown_fields_are_those_of_the_api_server(api: Api, namespace: str, body: Object):
    strict = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        await api.call("POST", JOBS.path(namespace), body=body, params=strict)
        said = ""
    except Refused as refused:
        said = refused.message
    own = (await asyncio.to_thread(rendered, body)).stderr
    fields = re.compile(r'unknown field "([^"]+)"')
    assert sorted(fields.findall(own)) == sorted(fields.findall(said))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(changed("spec.tasks.0.replicas", "two"), id="a text"),
        pytest.param(changed("spec.tasks", {}), id="no list"),
        pytest.param(changed("spec.tasks.0.template.spec.hostNetwork", "true"), id="no boolean"),
        pytest.param(
            changed("spec.tasks.0.template.spec.containers.0.env", [{"name": "A", "value": 1}]), id="a number"
        ),
        pytest.param(
            changed("spec.tasks.0.template.spec.containers.0.resources", {"limits": {"cpu": 0.5}}), id="half a CPU"
        ),
    ],
)
async def test_wrong_types_are_refused_by_both(api: Api, namespace: str, body: Object):
    with pytest.raises(Refused, match="must be of type"):
        await api.call("POST", JOBS.path(namespace), body=body, params={"dryRun": "All"})
    assert "must be of type" in (await asyncio.to_thread(rendered, body)).stderr


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(changed("spec.tasks.0.name", "Worker"), "spec.tasks[0].name", id="a pattern"),
        pytest.param(changed("spec.tasks.0.name", "wörker"), "spec.tasks[0].name", id="no ASCII"),
        pytest.param(changed("spec.queue", "No Such!"), "spec.queue", id="a queue"),
        pytest.param(changed("spec.networkTopology", {"mode": "weird"}), "spec.networkTopology.mode", id="choices"),
        pytest.param(changed("spec.tasks.0.maxRetry", -2), "spec.tasks[0].maxRetry", id="a minimum"),
        pytest.param(changed("spec.queue", "q" * 254), "spec.queue", id="a long text"),
        pytest.param(changed("spec.minSuccess", 0), "spec.minSuccess", id="a minimum of one"),
        pytest.param(changed("spec.policies.0.action", "X"), "spec.policies[0].action", id="by CEL"),
        pytest.param(
            changed("spec.tasks.0.partitionPolicy", {"partitionSize": 1}),
            "spec.tasks[0].partitionPolicy.totalPartitions",
            id="a required field",
        ),
        pytest.param(
            changed("spec.tasks.0.template.spec.containers.0.ports", [{"containerPort": 80}] * 2),
            "spec.tasks[0].template.spec.containers[0].ports[1]",
            id="twice in a list",
        ),
        pytest.param(
            changed("spec.tasks.0.template.spec.tolerations", [None]),
            "spec.tasks[0].template.spec.tolerations[0]",
            id="nothing in a list",
        ),
        pytest.param(changed("metadata.annotations", {"ä": "ö"}), "metadata.annotations", id="a key"),
        pytest.param(changed("metadata.labels", {"a": "b c"}), "metadata.labels", id="a label"),
    ],
)
async def test_what_the_api_server_refuses_by_itself_is_refused_under_the_same_path(
    api: Api, namespace: str, body: Object, field: str
):
    with pytest.raises(Refused) as refused:
        await api.call("POST", JOBS.path(namespace), body=body, params={"dryRun": "All"})
    assert field in refused.value.message
    assert "denied the request" not in refused.value.message  # by a webhook, which is asked last
    own = await asyncio.to_thread(rendered, body)
    assert (own.exit_code, field in own.stderr) == (1, True)


async def test_null_is_absent_for_both(api: Api, namespace: str):
    body = changed("spec.volumes", None)
    await api.call("POST", JOBS.path(namespace), body=body, params={"dryRun": "All"})
    assert (await asyncio.to_thread(rendered, body)).exit_code == 0

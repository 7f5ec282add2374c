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


async def test_null_is_absent_for_both(api: Api, namespace: str):
    body = changed("spec.volumes", None)
    await api.call("POST", JOBS.path(namespace), body=body, params={"dryRun": "All"})
    assert (await asyncio.to_thread(rendered, body)).exit_code == 0

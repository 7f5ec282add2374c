"""Object for object: what is made of a Job, beside recordings of what Volcano's own controller and webhooks made of it.

Nothing schedules and nothing runs; the tests admit each PodGroup, as a gang scheduler would.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import make_namespace
from tests.integration.harness.api import (
    CLAIMS,
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_GROUPS,
    PODS,
    SECRETS,
    SERVICES,
    Api,
    Object,
    Refused,
)
from tests.integration.harness.conformance import differences, normalised
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.operator import OperatorProcess
from tests.integration.harness.webhook import WebhookProcess

pytestmark = pytest.mark.xdist_group("webhook")

FOLDER = Path(__file__).parents[2] / "data" / "conformance"
CASES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.yaml"))}
RECORDED = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in CASES}
KINDS = (PODS, SERVICES, CONFIG_MAPS, SECRETS, CLAIMS, NETWORK_POLICIES, POD_GROUPS, JOBS)
# The recorded Job has a command that its YAML does not have.
NOT_COMPARED = "/jobs/ray-solo/spec/tasks/head/template/spec/containers/head/command: "

Answer = dict[str, Any]


@pytest.fixture(scope="module")
async def answers(
    control_plane: ControlPlane, api: Api, webhook: WebhookProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Answer]]:
    """What became of each case; all at the same time."""
    operator = OperatorProcess(
        kubeconfig=control_plane.operator_kubeconfig,
        log=tmp_path_factory.mktemp("conformance") / "operator.log",
        flags=("--gang-scheduler=volcano",),
        env={},
    )
    await operator.start()
    found = await asyncio.gather(*(answer_to(api, name, yaml.safe_load(text)) for name, text in CASES.items()))
    yield dict(zip(CASES, found, strict=True))
    await operator.kill()


@pytest.mark.parametrize("case", CASES)
async def test_a_job_becomes_what_volcano_makes_of_it(answers: dict[str, Answer], case: str):
    wanted = RECORDED[case]
    if "rejected" in wanted:
        assert "rejected" in answers[case]
    else:
        found = differences(wanted, answers[case])
        assert [line for line in found if not line.startswith(NOT_COMPARED)] == []


async def answer_to(api: Api, name: str, body: Object) -> Answer:
    """Create a case's Job, wait until nothing changes any more, and return all that is there."""
    namespace = f"case-{name}"
    await make_namespace(api, name=namespace)
    try:
        await api.create(JOBS, body, namespace)
    except Refused as refused:
        return {"rejected": refused.message}
    before, calm = None, 0
    async with asyncio.timeout(60):
        while calm < 4:
            for group in await api.list(POD_GROUPS, namespace):
                if group.get("status", {}).get("phase", "") in ("", "Pending"):
                    await api.patch(POD_GROUPS, group["metadata"]["name"], {"status": {"phase": "Inqueue"}}, namespace)
            pods = await api.list(PODS, namespace)
            now = (len(pods), [job.get("status") for job in await api.list(JOBS, namespace)])
            calm = calm + 1 if pods and now == before else 0
            before = now
            await asyncio.sleep(0.3)
    found = {kind.plural: {i["metadata"]["name"]: i for i in await api.list(kind, namespace)} for kind in KINDS}
    found["configmaps"].pop("kube-root-ca.crt", None)
    answer: Answer = normalised(found, namespace=namespace)
    await api.delete(NAMESPACES, namespace)
    return answer

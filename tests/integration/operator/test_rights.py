"""Missing rights and refused tokens: the log and /readyz name them, and everything goes on once they are there."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.harness.api import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    Api,
    eventually,
)
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import events_of, in_phase, job, play, pods_when, state_when, task
from tests.integration.harness.operator import OperatorProcess

from vcjob.cluster.paths import project_file


class Account:
    """A ServiceAccount with a copy of the operator's ClusterRole, to be bent by tests."""

    def __init__(self, api: Api, *, name: str, namespace: str) -> None:
        self.name = name
        self._api = api
        self._namespace = namespace
        self._rules = operator_rules()

    async def create(self) -> None:
        await self._api.create(SERVICE_ACCOUNTS, {"metadata": {"name": self.name}}, self._namespace)
        await self._api.create(CLUSTER_ROLES, {"metadata": {"name": self.name}, "rules": self._rules})
        binding = {
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self._namespace}],
        }
        await self._api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body=binding)

    async def take(self, verb: str, resource: str) -> None:
        """Take a right away."""
        rules = [rule for rule in self._rules if resource not in rule["resources"]]
        for rule in self._rules:
            if resource in rule["resources"]:
                others = [name for name in rule["resources"] if name != resource]
                rules += [rule | {"resources": others}] if others else []
                verbs = [left for left in rule["verbs"] if left != verb]
                rules += [rule | {"resources": [resource], "verbs": verbs}] if verbs else []
        await self._api.patch(CLUSTER_ROLES, self.name, {"rules": rules})

    async def give_all(self) -> None:
        await self._api.patch(CLUSTER_ROLES, self.name, {"rules": self._rules})

    async def token(self) -> str:
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self.name}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = (await self._api.call("POST", path, body=request))["status"]["token"]
        return token

    async def remove(self) -> None:
        await self._api.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{self.name}")
        await self._api.delete(CLUSTER_ROLES, self.name)


@pytest.fixture
async def account(api: Api, namespace: str) -> AsyncIterator[Account]:
    made = Account(api, name=f"operator-{uuid.uuid4().hex[:8]}", namespace=namespace)
    await made.create()
    yield made
    await made.remove()


def operator_rules() -> list[dict[str, Any]]:
    """What deploy/rbac grants."""
    folder = project_file("deploy/rbac")
    assert folder is not None
    documents = yaml.safe_load_all((folder / "operator.yaml").read_text())
    rules: list[dict[str, Any]] = next(d["rules"] for d in documents if d["kind"] == "ClusterRole")
    return rules


def kubeconfig_with(plane: ControlPlane, folder: Path, **user: str) -> Path:
    """Return a kubeconfig for the cluster with another user."""
    config = yaml.safe_load(plane.operator_kubeconfig.read_text())
    config["users"][0]["user"] = user
    path = folder / "account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def readyz(process: OperatorProcess) -> tuple[int, str]:
    try:
        return await process.get(f"{process.health_url}/readyz")
    except OSError:
        return 0, ""


async def said(process: OperatorProcess, *words: str, timeout_s: float = 20.0) -> str:
    """Return the page of /readyz once it is 503 and holds the words."""

    async def look() -> str:
        status, page = await readyz(process)
        assert status == 503 and all(word in page for word in words), page
        return page

    return await eventually(look, timeout_s=timeout_s, what=f"{words} on /readyz")


async def test_a_missing_verb_is_named_and_its_return_noticed(
    operator: StartOperator, account: Account, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    await account.take("create", "configmaps")
    config = kubeconfig_with(control_plane, tmp_path, token=await account.token())
    process = await operator("--namespace", namespace, kubeconfig=config, ready=False)
    await said(process, f"[-]rights: missing: create configmaps in namespace {namespace}")
    assert "create configmaps" in process.last_lines()

    await api.create(JOBS, job("needs-it", task("w"), plugins={"svc": []}), namespace)
    await api.create(JOBS, job("does-without", task("w"), plugins={"env": []}), namespace)
    await play(api, (await pods_when(api, "does-without", namespace, count=1)).values(), "Running")
    await in_phase(api, "does-without", namespace, "Running")
    waiting = await state_when(api, "needs-it", namespace, phase="Pending", reason="Forbidden")
    assert "configmaps" in waiting["status"]["state"]["message"]
    (event,) = await eventually(lambda: events_of(api, "needs-it", namespace, reason="FailedCreate"))
    assert event["type"] == "Warning"

    await account.give_all()
    await process.wait_ready()
    await pods_when(api, "needs-it", namespace, count=1, timeout_s=60)
    await eventually(lambda: api.find(CONFIG_MAPS, "needs-it-svc", namespace))


@pytest.mark.parametrize(
    ("verb", "resource", "title"),
    [
        ("watch", "pods", "watch pods"),
        ("list", "jobs", "list jobs.batch.volcano.sh"),
        ("update", "jobs/status", "update jobs/status.batch.volcano.sh"),
    ],
)
async def test_what_nothing_works_without_is_named_too(
    verb: str,
    resource: str,
    title: str,
    operator: StartOperator,
    account: Account,
    api: Api,
    namespace: str,
    control_plane: ControlPlane,
    tmp_path: Path,
):
    await account.take(verb, resource)
    config = kubeconfig_with(control_plane, tmp_path, token=await account.token())
    process = await operator("--namespace", namespace, kubeconfig=config, ready=False)
    await said(process, f"[-]rights: missing: {title} in namespace {namespace}")
    assert title in process.last_lines()
    await api.create(JOBS, job("j", task("w")), namespace)
    await asyncio.sleep(2.0)
    await account.give_all()
    await process.wait_ready(timeout_s=60)
    await play(api, (await pods_when(api, "j", namespace, count=1, timeout_s=90)).values(), "Running")
    await in_phase(api, "j", namespace, "Running", timeout_s=60)


async def test_a_refused_token_is_named_and_a_new_one_taken(
    operator: StartOperator, account: Account, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    file = tmp_path / "token"
    file.write_text("no.such.token")
    config = kubeconfig_with(control_plane, tmp_path, tokenFile=str(file))
    process = await operator("--namespace", namespace, kubeconfig=config, ready=False)
    await said(process, "[-]kinds: waiting for the API server: Unauthorized")
    assert "Unauthorized" in process.last_lines()
    assert "no.such.token" not in process.last_lines(1000)

    file.write_text(await account.token())
    await process.wait_ready()
    await api.create(JOBS, job("j", task("w")), namespace)
    await pods_when(api, "j", namespace, count=1)


async def test_a_token_that_runs_out_is_named_and_a_new_one_taken(
    operator: StartOperator, account: Account, api: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
):
    file = tmp_path / "token"
    file.write_text(await account.token())
    config = kubeconfig_with(control_plane, tmp_path, tokenFile=str(file))
    process = await operator("--namespace", namespace, kubeconfig=config)
    await api.create(JOBS, job("before", task("w")), namespace)
    await pods_when(api, "before", namespace, count=1)

    await api.delete(SERVICE_ACCOUNTS, account.name, namespace)  # and with it every token of the account
    await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": account.name}}, namespace)

    async def is_refused() -> bool:
        await api.patch(JOBS, "before", {"metadata": {"annotations": {"t": uuid.uuid4().hex}}}, namespace)
        name = f"j-{uuid.uuid4().hex[:8]}"
        await api.create(JOBS, job(name, task("w")), namespace)
        return "Unauthorized" in process.last_lines()

    await eventually(is_refused, every_s=1.0, timeout_s=40)
    await said(process, "Unauthorized", timeout_s=90)
    assert process.running
    file.write_text(await account.token())
    await process.wait_ready(timeout_s=60)
    await api.create(JOBS, job("after", task("w")), namespace)
    await pods_when(api, "after", namespace, count=1, timeout_s=60)


async def test_a_namespace_that_does_not_exist_is_named_and_served_once_it_does(operator: StartOperator, api: Api):
    name = f"later-{uuid.uuid4().hex[:8]}"
    process = await operator("--namespace", name)
    await eventually(lambda: f"namespaces do not exist, or not yet namespaces={name}" in process.last_lines())
    await make_namespace(api, name=name)
    await api.create(JOBS, job("early", task("w")), name)
    await pods_when(api, "early", name, count=1)
    await api.delete(NAMESPACES, name)

"""The webhook as a process: rubbish, big bodies, load, its own certificates, its absence, and its end."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conftest import StartOperator
from tests.integration.harness.api import JOBS, PODS, SECRETS, Api, Object, Refused, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import in_phase, job, play, pods_when, task
from tests.integration.harness.webhook import (
    WebhookProcess,
    certificate_of,
    webhook_configuration,
    write_webhook_kubeconfig,
)

pytestmark = pytest.mark.xdist_group("webhook")

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{REGISTRATION}/mutatingwebhookconfigurations"
VALIDATING = f"{REGISTRATION}/validatingwebhookconfigurations"
# Long enough for a busy machine, short enough for whole lives of authorities within a test.
SHORT_LIVES = (f"--cert-validity-days={9 / 86400}", f"--ca-validity-days={27 / 86400}")
MANAGED = (
    "--manage-certs",
    "--webhook-service=vcjob-webhook.vcjob-system",
    "--cert-extra-name=127.0.0.1",
    "--shutdown-delay=0",
)


def review(**fields: Any) -> bytes:
    request = {
        "uid": "u-1",
        "operation": "CREATE",
        "resource": {"group": "batch.volcano.sh", "version": "v1alpha1", "resource": "jobs"},
        "userInfo": {"username": "test"},
        "namespace": "n",
        "object": job("j", task("w")),
        **fields,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


# Bodies


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        pytest.param("/jobs/mutate", b"", 400, id="nothing"),
        pytest.param("/jobs/mutate", b"{]", 400, id="no JSON"),
        pytest.param("/jobs/mutate", b"[" * 200_000, 400, id="very deep"),
        pytest.param("/jobs/validate", b'{"kind": "AdmissionReview"}', 400, id="no review"),
        pytest.param("/jobs/validate", review(operation="DELETE", object=None), 400, id="wrong operation"),
        pytest.param(
            "/jobs/mutate", review(resource={"group": "", "version": "v1", "resource": "pods"}), 400, id="wrong kind"
        ),
        pytest.param("/jobs/validate", review(subResource="status"), 400, id="subresource"),
        pytest.param("/pods/mutate", review(), 404, id="no such webhook"),
        pytest.param("/jobs/mutate", b"x" * (6 * 1024 * 1024), 413, id="too big"),
    ],
)
async def test_what_cannot_be_answered_is_an_http_error(webhook: WebhookProcess, path: str, body: bytes, code: int):
    assert (await webhook.post(path, body))[0] == code


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="empty"),
        pytest.param({"spec": 7, "metadata": []}, id="nothing where it belongs"),
        pytest.param({"spec": {}, "metadata": "x"}, id="metadata that are none"),
        pytest.param(
            {"metadata": {"name": "j"}, "spec": {"tasks": [None, 1, {"template": {"spec": []}}]}}, id="odd tasks"
        ),
        pytest.param(
            {"metadata": {"name": "j"}, "spec": {"plugins": {"svc": [1, {}]}, "tasks": [{}]}}, id="odd plugins"
        ),
    ],
)
async def test_an_object_with_anything_in_it_gets_an_answer(webhook: WebhookProcess, body: Object):
    for path in ("/jobs/mutate", "/jobs/validate"):
        for name in ("j", ""):  # without one, the Job is to get a generated name
            code, text = await webhook.post(path, review(object=body, name=name))
            assert (code, json.loads(text)["response"]["uid"]) == (200, "u-1")


async def test_the_biggest_job_that_fits_the_store_can_be_made_and_changed(
    api: Api, namespace: str, webhook: WebhookProcess
):
    padding = [{"name": f"P{index}", "value": "x" * 1000} for index in range(1250)]
    big = job("big", task("w", 2, containers=[{"name": "main", "image": "i", "env": padding}]))
    assert (await api.create(JOBS, big, namespace))["spec"]["minAvailable"] == 2
    change = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]
    assert (await api.patch(JOBS, "big", change, namespace, kind="json"))["spec"]["tasks"][0]["replicas"] == 3


async def test_many_jobs_at_once_all_get_their_answers(api: Api, namespace: str, webhook: WebhookProcess):
    made = await asyncio.gather(*(api.create(JOBS, job(f"j{i}", task("w", 2)), namespace) for i in range(60)))
    assert {item["spec"]["minAvailable"] for item in made} == {2}


# Coming and going


async def test_local_configurations_go_with_the_process(control_plane: ControlPlane, api: Api, tmp_path: Path):
    process = WebhookProcess(
        kubeconfig=control_plane.admin_kubeconfig,
        log=tmp_path / "webhook.log",
        flags=("--local", "--webhook-configuration=passing"),
    )
    await process.start()
    await eventually(lambda: find(api, f"{VALIDATING}/passing"))
    assert await process.stop() == 0
    assert await find(api, f"{MUTATING}/passing") is None
    assert await find(api, f"{VALIDATING}/passing") is None


async def test_it_answers_for_a_while_after_it_was_told_to_stop(control_plane: ControlPlane, tmp_path: Path):
    process = WebhookProcess(
        kubeconfig=control_plane.admin_kubeconfig,
        log=tmp_path / "webhook.log",
        flags=("--local", "--webhook-configuration=leaving", "--shutdown-delay=2"),
    )
    await process.start()
    assert process.process is not None
    process.process.terminate()
    await eventually(lambda: not_ready(process))
    assert (await process.post("/jobs/validate", review()))[0] == 200
    assert await process.stop() == 0


async def test_without_the_webhook_only_new_jobs_are_held_up(
    control_plane: ControlPlane, api: Api, namespace: str, operator: StartOperator, tmp_path: Path
):
    kubeconfig = await write_webhook_kubeconfig(api, tmp_path / "kubeconfig", like=control_plane.operator_kubeconfig)
    await operator(f"--namespace={namespace}")
    async with managed(api, namespace, kubeconfig=kubeconfig, folder=tmp_path, replicas=1) as (webhook,):
        await eventually(lambda: accepted(api, namespace, job("old", task("w", 2))))
        pods = await pods_when(api, "old", namespace, count=2)
        await webhook.kill()
        with pytest.raises(Refused, match="failed calling webhook"):
            await api.create(JOBS, job("new", task("w")), namespace)
        await play(api, pods.values(), "Running")
        await in_phase(api, "old", namespace, "Running")
        await play(api, pods.values(), "Succeeded")
        await in_phase(api, "old", namespace, "Completed")
        pod = {"metadata": {"name": "free"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
        await api.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}, namespace)
        await api.delete(JOBS, "old", namespace)
        await webhook.start()
        await eventually(lambda: accepted(api, namespace, job("new", task("w"))))


# Its own certificates


async def test_certificates_are_renewed_without_a_gap(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
):
    """Two replicas, for longer than an authority waits to be replaced by the next."""
    kubeconfig = await write_webhook_kubeconfig(api, tmp_path / "kubeconfig", like=control_plane.operator_kubeconfig)
    await empty_secret(api)
    bundles, leaves, lost = set(), set(), []
    async with managed(
        api, namespace, kubeconfig=kubeconfig, folder=tmp_path, replicas=2, flags=SHORT_LIVES
    ) as replicas:
        await eventually(lambda: accepted(api, namespace, job("probe", task("w"))))
        end = asyncio.get_running_loop().time() + 24
        while asyncio.get_running_loop().time() < end:
            try:
                await api.call("POST", JOBS.path(namespace), body=job("j", task("w")), params={"dryRun": "All"})
            except Refused as refused:
                lost.append(refused.message)
            bundle = await bundle_of(api)
            bundles.add(bundle)
            for replica in replicas:
                try:
                    leaves.add(await certificate_of(replica.url, bundle=bundle))
                except (ssl.SSLError, OSError) as error:
                    lost.append(f"{replica.log.name}: {error}")
            await asyncio.sleep(0.1)
        logs = "\n".join(replica.last_lines(10_000) for replica in replicas)
    assert lost == []
    assert len(bundles) >= 2
    assert len(leaves) >= 4
    assert "PRIVATE" not in logs
    assert "ERROR" not in logs


async def test_the_secret_keeps_what_a_new_replica_needs(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
):
    kubeconfig = await write_webhook_kubeconfig(api, tmp_path / "kubeconfig", like=control_plane.operator_kubeconfig)
    await empty_secret(api)
    async with managed(api, namespace, kubeconfig=kubeconfig, folder=tmp_path, replicas=1):
        before = await api.get(SECRETS, "vcjob-webhook-cert", "vcjob-system")
        bundle = await bundle_of(api)
    async with managed(api, namespace, kubeconfig=kubeconfig, folder=tmp_path, replicas=1):
        assert (await api.get(SECRETS, "vcjob-webhook-cert", "vcjob-system"))["data"] == before["data"]
        assert await eventually(lambda: bundle_of(api)) == bundle


@asynccontextmanager
async def managed(
    api: Api, namespace: str, *, kubeconfig: Path, folder: Path, replicas: int, flags: tuple[str, ...] = ()
) -> AsyncIterator[list[WebhookProcess]]:
    """Replicas under the webhook's own identity; new Jobs of the namespace pass the first and the last of them."""
    async with AsyncExitStack() as stack:
        processes = [
            WebhookProcess(kubeconfig=kubeconfig, log=folder / f"webhook-{index}.log", flags=(*MANAGED, *flags))
            for index in range(replicas)
        ]
        for process in processes:
            stack.push_async_callback(process.kill)
            await process.start()
        for kind, collection, hook, process in (
            ("MutatingWebhookConfiguration", MUTATING, "mutate", processes[0]),
            ("ValidatingWebhookConfiguration", VALIDATING, "validate", processes[-1]),
        ):
            body = webhook_configuration(
                kind,
                name="vcjob",
                namespace=namespace,
                path=f"/jobs/{hook}",
                webhook=f"{hook}job.volcano.sh",
                url=process.url,
            )
            await api.call("POST", collection, body=body)
            stack.push_async_callback(api.call, "DELETE", f"{collection}/vcjob")
        await eventually(lambda: bundle_of(api))
        yield processes


async def empty_secret(api: Api) -> None:
    """Bring the webhook's Secret into the state in which deploy/rbac makes it."""
    await api.patch(SECRETS, "vcjob-webhook-cert", {"data": None}, "vcjob-system")


async def bundle_of(api: Api) -> str:
    """Return what the validating webhook trusts; nothing as long as nobody has filled it in."""
    found = await api.call("GET", f"{VALIDATING}/vcjob")
    return str(found["webhooks"][0]["clientConfig"].get("caBundle", ""))


async def accepted(api: Api, namespace: str, body: Object) -> bool:
    """Whether the Job is taken; webhooks take a moment until API servers know them."""
    try:
        await api.create(JOBS, body, namespace)
    except Refused as refused:
        assert "failed calling webhook" in refused.message
        return False
    return True


async def find(api: Api, path: str) -> Object | None:
    try:
        found: Object = await api.call("GET", path)
    except Refused as refused:
        assert refused.code == 404
        return None
    return found


async def not_ready(process: WebhookProcess) -> bool:
    return (await process.get(process.health_url + "/readyz"))[0] == 503

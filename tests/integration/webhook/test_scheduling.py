"""What users and the scheduler meet when they make PodGroups and Queues, through a real API server.

The messages hold the fragments that Volcano's own end-to-end tests look for.
"""

import asyncio
from pathlib import Path

import pytest
from tests.integration.conftest import StartOperator
from tests.integration.harness.api import JOBS, NAMESPACES, POD_GROUPS, QUEUES, Api, Object, Refused, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import in_phase, job, play, pods_when, task
from tests.integration.harness.webhook import write_webhook_kubeconfig
from tests.integration.webhook.conftest import queue

pytestmark = [pytest.mark.xdist_group("webhook"), pytest.mark.usefixtures("webhook")]

TWICE = {"highestTierAllowed": 2, "highestTierName": "rack"}
HIERARCHY = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")


def group(name: str = "g", **spec: object) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1, **spec},
    }


def placed(name: str, path: str, weights: str) -> Object:
    """A Queue with the annotations of a hierarchy."""
    annotations = {key: value for key, value in zip(HIERARCHY, (path, weights), strict=True) if value}
    return {**queue(name), "metadata": {"name": name, "annotations": annotations}}


# PodGroups


async def test_a_group_goes_to_the_queue_of_its_namespace(api: Api, namespace: str):
    await api.create(QUEUES, queue(f"of-{namespace}"))
    assert (await api.create(POD_GROUPS, group("before"), namespace))["spec"]["queue"] == "default"
    annotations = {"scheduling.volcano.sh/queue-name": f"of-{namespace}"}
    await api.patch(NAMESPACES, namespace, {"metadata": {"annotations": annotations}})
    for name in ("one", "two"):
        assert (await api.create(POD_GROUPS, group(name), namespace))["spec"]["queue"] == f"of-{namespace}"
    await api.create(QUEUES, queue(f"own-{namespace}"))
    own = await api.create(POD_GROUPS, group("own", queue=f"own-{namespace}"), namespace)
    assert own["spec"]["queue"] == f"own-{namespace}"


async def test_a_group_waits_at_no_closed_queue_unless_its_job_restarts(api: Api, namespace: str):
    name = f"closing-{namespace}"
    await api.create(QUEUES, queue(name))
    owner = await api.create(JOBS, job("j", task("w"), queue=name), namespace)
    await api.set_status(QUEUES, name, {"state": "Closing"})
    message = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `Closing`"

    async def refused() -> bool:  # a closed Queue may be taken for open for a moment
        try:
            await api.call("POST", POD_GROUPS.path(namespace), body=group(queue=name), params={"dryRun": "All"})
        except Refused as error:
            return message in error.message
        return False

    await eventually(refused, timeout_s=60, every_s=1.0)
    body = group(queue=name)
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    await api.create(POD_GROUPS, body, namespace)
    # The scheduler writes the status of a group through the object itself.
    await api.patch(POD_GROUPS, "g", {"status": {"phase": "Inqueue"}}, namespace)


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        pytest.param(group(queue="nosuch"), "unable to find queue: nosuch", id="queue"),
        pytest.param(group(networkTopology=TWICE), "must not be specified simultaneously", id="tiers"),
        pytest.param(
            group(subGroupPolicy=[{"name": "a", "networkTopology": TWICE}]),
            "must not be specified simultaneously",
            id="tiers of a part",
        ),
    ],
)
async def test_a_bad_group_is_refused_with_the_reason(api: Api, namespace: str, body: Object, fragment: str):
    with pytest.raises(Refused) as refused:
        await api.create(POD_GROUPS, body, namespace)
    assert fragment in refused.value.message


async def test_a_job_restarts_while_its_queue_is_closing(api: Api, namespace: str, operator: StartOperator):
    name = f"last-{namespace}"
    await api.create(QUEUES, queue(name))
    await operator("--namespace", namespace, "--gang-scheduler", "volcano")
    restart = [{"event": "PodFailed", "action": "RestartJob"}]
    made = await api.create(JOBS, job("j", task("w"), queue=name, policies=restart), namespace)
    group_name = f"j-{made['metadata']['uid']}"
    first = await admit(api, group_name, namespace)
    pods = await pods_when(api, "j", namespace, count=1)
    await play(api, pods.values(), "Running")
    await api.set_status(QUEUES, name, {"state": "Closing"})
    await asyncio.sleep(1.5)  # until no list of the Queues from before counts
    await play(api, pods.values(), "Failed", exit_code=1)

    async def replaced() -> bool:
        found = await api.find(POD_GROUPS, group_name, namespace)
        return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]

    await eventually(replaced, timeout_s=30)
    await admit(api, group_name, namespace)
    await play(api, (await pods_when(api, "j", namespace, count=1)).values(), "Running")
    await in_phase(api, "j", namespace, "Running")


async def admit(api: Api, name: str, namespace: str) -> Object:
    """Let the Pods of a group be made, as the scheduler does."""
    await eventually(lambda: api.find(POD_GROUPS, name, namespace))
    return await api.patch(POD_GROUPS, name, {"status": {"phase": "Inqueue"}}, namespace)


# Queues


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({}, {"weight": 1, "reclaimable": True}, id="both"),
        pytest.param({"weight": 0}, {"weight": 1, "reclaimable": True}, id="weight 0"),
        pytest.param({"weight": 3, "reclaimable": False}, {"weight": 3, "reclaimable": False}, id="what is said"),
    ],
)
async def test_a_new_queue_gets_its_defaults(api: Api, namespace: str, spec: Object, wanted: Object):
    body = {**queue(f"new-{namespace}"), "spec": spec}
    made = (await api.create(QUEUES, body))["spec"]
    assert {name: made[name] for name in wanted} == wanted


async def test_a_hierarchy_begins_at_the_root(api: Api, namespace: str):
    made = await api.create(QUEUES, placed(f"q-{namespace}", f"{namespace}/a", "2/3"))
    assert [made["metadata"]["annotations"][key] for key in HIERARCHY] == [f"root/{namespace}/a", "1/2/3"]
    with pytest.raises(Refused, match="must not be a path above that of another queue"):
        await api.create(QUEUES, placed(f"above-{namespace}", f"root/{namespace}", "1/2"))


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        pytest.param(queue("q", weight=-1), "should be greater than or equal to 1", id="weight"),
        pytest.param(queue("q", guarantee={"resource": {"cpu": 1}}), "must be >= guarantee", id="only guarantee"),
        pytest.param(
            queue("q", capability={"cpu": 1}, deserved={"cpu": 2}), "must be <= capability", id="beyond capability"
        ),
        pytest.param(queue("q", deserved={"cpu": "1 core"}), "spec.deserved.cpu", id="unit"),
        pytest.param(placed("q", "root/a", ""), "must have the same length", id="no weights"),
        pytest.param(placed("q", "root/a", "1/2/3"), "must have the same length", id="too many weights"),
        pytest.param(placed("q", "root/a", "1/-2"), "must be a number larger than 0", id="negative weight"),
        pytest.param(queue("q", parent="nosuch"), "unable to find parent queue: nosuch", id="parent"),
    ],
)
async def test_a_bad_queue_is_refused_with_the_reason(api: Api, body: Object, fragment: str):
    with pytest.raises(Refused) as refused:
        await api.create(QUEUES, body)
    assert fragment in refused.value.message


async def test_a_family_of_queues_keeps_its_shares(api: Api, namespace: str):
    parent, first, second = (f"{name}-{namespace}" for name in ("parent", "first", "second"))
    await api.create(QUEUES, queue(parent, capability={"cpu": 10}, deserved={"cpu": 8}))
    await api.create(QUEUES, queue(first, parent=parent, deserved={"cpu": 5}))
    with pytest.raises(Refused, match=r"the sum of deserved\[cpu\] of the children"):
        await api.create(QUEUES, queue(second, parent=parent, deserved={"cpu": 4}))
    await api.create(QUEUES, queue(second, parent=parent, deserved={"cpu": 3}))
    with pytest.raises(Refused, match=r"the sum of deserved\[cpu\] of the children"):
        await api.patch(QUEUES, parent, {"spec": {"deserved": {"cpu": 7}}})
    with pytest.raises(Refused, match="is below queue"):
        await api.patch(QUEUES, parent, {"spec": {"parent": first}})
    with pytest.raises(Refused, match="has 2 child queues"):
        await api.delete(QUEUES, parent)
    for name in (second, first, parent):
        await api.delete(QUEUES, name)


async def test_a_queue_is_closed_changed_and_removed(api: Api, namespace: str):
    name = f"life-{namespace}"
    await api.create(QUEUES, queue(name))
    await api.set_status(QUEUES, name, {"state": "Closing"})
    await api.patch(QUEUES, name, {"spec": {"weight": 2}, "metadata": {"annotations": {"a": "b"}}})
    await api.set_status(QUEUES, name, {"state": "Closed"})
    await api.delete(QUEUES, name)
    assert await api.find(QUEUES, name) is None


async def test_default_and_root_stay(api: Api):
    await api.create(QUEUES, queue("root"))
    for name in ("default", "root"):
        with pytest.raises(Refused, match=f"`{name}` queue can not be deleted"):
            await api.delete(QUEUES, name)
    with pytest.raises(Refused, match="of the root queue may not be changed"):
        await api.patch(QUEUES, "root", {"spec": {"capability": {"cpu": 1}}})


# Rights


async def test_the_webhooks_identity_may_read_what_its_rules_ask_for(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
):
    kubeconfig = await write_webhook_kubeconfig(api, tmp_path / "kubeconfig", like=control_plane.operator_kubeconfig)
    async with Api.connected(kubeconfig) as own:
        assert await own.list(QUEUES)
        assert await own.get(NAMESPACES, namespace)
        for resource in (NAMESPACES, POD_GROUPS, JOBS):
            with pytest.raises(Refused, match="forbidden"):
                await own.list(resource)

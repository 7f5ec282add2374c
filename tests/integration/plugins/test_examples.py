"""Every Job of examples/, applied as a user would, reaches its Pods."""

from pathlib import Path

import pytest
import yaml
from tests.integration.conftest import StartOperator, make_namespace
from tests.integration.harness.api import CONFIG_MAPS, NAMESPACES, SECRETS, SERVICES, Api, Object
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import env_of, in_phase, pods_when
from tests.integration.harness.kubectl import Kubectl

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import KUBECTL

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
BRINGS = {"pytorch": ["svc"], "tensorflow": ["svc"], "ray": ["svc"], "mpi": ["svc", "ssh"]}

pytestmark = pytest.mark.xdist_group("examples")


def jobs_in(path: Path) -> list[Object]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document and document["kind"] == "Job"]


def places_of(paths: list[Path]) -> dict[Path, str]:
    """Give each file a namespace, in which no other has Jobs of the same names."""
    taken: list[set[str]] = []
    places: dict[Path, str] = {}
    for path in paths:
        names = {example["metadata"]["name"] for example in jobs_in(path)}
        number = next((n for n, others in enumerate(taken) if not names & others), len(taken))
        if number == len(taken):
            taken.append(set())
        taken[number] |= names
        places[path] = f"examples-{number}"
    return places


async def test_every_example_reaches_its_pods(operator: StartOperator, api: Api, control_plane: ControlPlane):
    assert len(EXAMPLES) >= 17
    places = places_of(EXAMPLES)
    for place in set(places.values()):
        await make_namespace(api, name=place)
    await operator(*(f"--namespace={place}" for place in set(places.values())))
    program = find_binaries((KUBECTL,), say=Progress())[KUBECTL.name]
    for path, place in places.items():
        kubectl = Kubectl(program, kubeconfig=control_plane.admin_kubeconfig, namespace=place)
        said = await kubectl("apply", "--validate=strict", "-f", str(path))
        assert "Warning" not in said
    for path, place in places.items():
        for example in jobs_in(path):
            await reaches_its_pods(api, example, place)
    for place in set(places.values()):
        await api.delete(NAMESPACES, place)


async def reaches_its_pods(api: Api, example: Object, place: str) -> None:
    name, tasks = example["metadata"]["name"], example["spec"]["tasks"]
    pods = await pods_when(api, name, place, count=sum(task.get("replicas", 1) for task in tasks))
    found = await in_phase(api, name, place, "Pending")
    plugins = set(example["spec"].get("plugins", {}))
    plugins |= {brought for plugin in plugins for brought in BRINGS.get(plugin, [])}
    marked = plugins - {"hcclrank"}
    controlled = found["status"].get("controlledResources", {})
    assert {key for key in controlled if key.startswith("plugin-")} == {f"plugin-{plugin}" for plugin in marked}
    if "svc" in plugins:
        assert (await api.get(SERVICES, name, place))["spec"]["clusterIP"] == "None"
        assert await api.get(CONFIG_MAPS, f"{name}-svc", place)
    if "ssh" in plugins:
        assert await api.get(SECRETS, f"{name}-ssh", place)
    if "ray" in plugins:
        assert await api.get(SERVICES, f"{name}-head-svc", place)
    for pod_name, pod in pods.items():
        env = env_of(pod)
        if "env" in plugins:
            assert env["VC_TASK_INDEX"] == env["VK_TASK_INDEX"] == pod_name.rpartition("-")[2]
        if "svc" in plugins:
            assert pod["spec"]["subdomain"] == name

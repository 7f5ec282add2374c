"""Plugins of other packages: found through their entry point, and harmless when they are broken."""

from pathlib import Path

from tests.integration.conftest import StartOperator
from tests.integration.harness.api import CONFIG_MAPS, JOBS, Api, eventually
from tests.integration.harness.jobs import env_of, events_of, in_phase, job, play, pods_of, pods_when, state_when, task

MODULE = """\
from vcjob.plugins.base import Flag, ObjectRef, Plugin, WantedObject


class Greeter(Plugin):
    name = "greeter"
    requires = ("env",)
    flags = (Flag(name="word", kind=str, default="hello", help="What to say."),)

    def on_job_add(self):
        ref = ObjectRef(api_version="v1", kind="ConfigMap", name=f"{self.job.name}-greeting")
        data = {"word": self.args["word"], "pods": str(self.job.spec.total_replicas)}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        return (WantedObject(ref=ref, manifest=manifest, follow=(("data",),)),)

    def on_pod_create(self, pod):
        pod.add_env({"name": "GREETING", "value": f"{self.args['word']} {pod.name}"})


class Clumsy(Plugin):
    name = "clumsy"
    flags = (Flag(name="at", kind=str, default="pod", help="Where to fall."),)

    def _fall(self, at):
        if self.args["at"] == at:
            raise ZeroDivisionError("fell at " + at)

    def on_job_add(self):
        self._fall("job")
        return ()

    def on_pod_create(self, pod):
        self._fall("pod")

    def on_job_delete(self):
        self._fall("end")
        return ()
"""
ENTRY_POINTS = """\
[vcjob.plugins]
greeter = outsiders:Greeter
clumsy = outsiders:Clumsy
absent = outsiders.missing:Absent
env = outsiders:Greeter
"""


def install(folder: Path) -> None:
    """Put a package into the folder as an installer would."""
    (folder / "outsiders.py").write_text(MODULE)
    info = folder / "outsiders-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outsiders\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


async def test_plugins_of_other_packages(operator: StartOperator, api: Api, namespace: str, tmp_path: Path):
    install(tmp_path)
    process = await operator("--namespace", namespace, env={"PYTHONPATH": str(tmp_path)})
    await api.create(JOBS, job("greets", task("w", 2), plugins={"greeter": ["--word=good morning"]}), namespace)
    for at in ("pod", "job"):
        await api.create(JOBS, job(f"falls-at-{at}", task("w"), plugins={"clumsy": [f"--at={at}"]}), namespace)
    await api.create(JOBS, job("falls-at-end", task("w"), plugins={"clumsy": ["--at=end"], "svc": []}), namespace)
    await api.create(JOBS, job("absent", task("w"), plugins={"absent": []}), namespace)
    await api.create(JOBS, job("other", task("w"), plugins={"env": []}), namespace)

    pods = await pods_when(api, "greets", namespace, count=2)
    env = env_of(pods["greets-w-1"])
    assert (env["GREETING"], env["VC_TASK_INDEX"]) == ("good morning greets-w-1", "1")
    found = await in_phase(api, "greets", namespace, "Pending")
    assert found["status"]["controlledResources"] == {"plugin-env": "env", "plugin-greeter": "greeter"}
    greeting = await api.get(CONFIG_MAPS, "greets-greeting", namespace)
    assert greeting["data"] == {"word": "good morning", "pods": "2"}
    await play(api, pods.values(), "Running")
    await in_phase(api, "greets", namespace, "Running")
    await play(api, pods.values(), "Succeeded")
    await in_phase(api, "greets", namespace, "Completed")

    async def is_gone() -> bool:
        return await api.find(CONFIG_MAPS, "greets-greeting", namespace) is None

    await eventually(is_gone)

    # A plugin that raises costs its own Job only, which says so.
    waiting = await state_when(api, "falls-at-pod", namespace, phase="Pending", reason="PluginError")
    assert "fell at pod" in waiting["status"]["state"]["message"]
    assert await pods_of(api, "falls-at-pod", namespace) == {}
    (event,) = await eventually(lambda: events_of(api, "falls-at-pod", namespace, reason="PluginError"))
    assert event["type"] == "Warning"
    failed = await in_phase(api, "falls-at-job", namespace, "Failed")
    assert "fell at job" in failed["status"]["state"]["message"]
    absent = await in_phase(api, "absent", namespace, "Failed")
    assert "absent" in absent["status"]["state"]["message"]

    pods = await pods_when(api, "falls-at-end", namespace, count=1)
    (event,) = await eventually(lambda: events_of(api, "falls-at-end", namespace, reason="PluginBroken"))
    assert "on_job_delete failed with ZeroDivisionError: fell at end" in event["message"]
    await play(api, pods.values(), "Running")
    await in_phase(api, "falls-at-end", namespace, "Running")
    await play(api, pods.values(), "Succeeded")
    await in_phase(api, "falls-at-end", namespace, "Completed")

    async def objects_are_gone() -> bool:
        return await api.find(CONFIG_MAPS, "falls-at-end-svc", namespace) is None

    await eventually(objects_are_gone, what="the end of the other plugins' objects")

    await play(api, (await pods_when(api, "other", namespace, count=1)).values(), "Running")
    await in_phase(api, "other", namespace, "Running")
    log = process.log.read_text()
    assert "plugin cannot be used" in log
    assert "outsiders.missing:Absent cannot be loaded" in log
    assert "takes a name that another plugin has" in log
    assert process.running

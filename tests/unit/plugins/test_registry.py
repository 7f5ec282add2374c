"""Which plugins a Job has, and what happens to a plugin of another package that is broken."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from vcjob.plugins import registry
from vcjob.plugins.base import Flag, Note, ObjectRef, Plugin, PluginError, PodDraft, WantedObject
from vcjob.plugins.guard import Guarded
from vcjob.plugins.registry import (
    Catalogue,
    broken_plugins,
    enabled_plugins,
    find_plugin,
    known_names,
    load_catalogue,
    unknown_plugins,
)

from .builders import job


class Good(Plugin):
    """A plugin of another package."""

    name = "good"
    flags = (Flag(name="size", kind=int, default=1, help=""),)
    requires = ("svc",)

    def on_pod_create(self, pod: PodDraft) -> None:
        pod.add_env({"name": "SIZE", "value": str(self.args["size"])})


class Raising(Plugin):
    """A plugin whose hooks all raise."""

    name = "raising"

    def problems(self) -> tuple[str, ...]:
        raise ValueError("one")

    def notes(self) -> tuple[Note, ...]:
        raise ValueError("two")

    def on_job_add(self) -> tuple[WantedObject, ...]:
        raise ValueError("three")

    def on_pod_create(self, pod: PodDraft) -> None:
        raise ValueError("four")


class Unbuildable(Plugin):
    """A plugin that cannot even be made."""

    name = "unbuildable"

    def __init__(self, job: Any, *, args: Any) -> None:
        raise KeyError("five")


class BadFlags(Plugin):
    """A plugin whose flags are no flags."""

    name = "gone"
    flags = ("size",)


class BadRequires(Plugin):
    """A plugin that forgot a comma."""

    name = "gone"
    requires = "svc"


class Thief(Plugin):
    """A plugin under a name of ours."""

    name = "svc"


def entry(name: str, attribute: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{attribute}", group="vcjob.plugins")


def catalogue(*entries: EntryPoint) -> Catalogue:
    return load_catalogue(entries)


def test_our_plugins_run_in_a_fixed_order() -> None:
    assert known_names() == ("env", "ssh", "svc", "tensorflow", "mpi", "pytorch", "ray", "hcclrank")
    assert broken_plugins() == {}


def test_each_plugin_is_found_under_its_name() -> None:
    assert all(find_plugin(name).name == name for name in known_names())
    assert find_plugin("nosuch") is None


def test_the_order_in_the_spec_does_not_matter() -> None:
    made = job().plugin("hcclrank").plugin("svc").plugin("env").task("a", 1).make()
    assert [plugin.name for plugin in enabled_plugins(made)] == ["env", "svc", "hcclrank"]


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        ("pytorch", ["svc", "pytorch"]),
        ("tensorflow", ["svc", "tensorflow"]),
        ("ray", ["svc", "ray"]),
        ("mpi", ["ssh", "svc", "mpi"]),
        ("hcclrank", ["hcclrank"]),
    ],
)
def test_plugins_bring_those_that_they_need(plugin: str, names: list[str]) -> None:
    assert [found.name for found in enabled_plugins(job().plugin(plugin).task("master", 1).make())] == names


def test_a_plugin_that_is_needed_keeps_its_own_arguments() -> None:
    made = job().plugin("mpi").plugin("ssh", "--ssh-port=2222").task("master", 1)
    assert made.one("ssh").args["ssh-port"] == 2222


def test_unknown_plugins_are_named_and_left_out() -> None:
    made = job().plugin("nosuch").plugin("env").task("a", 1).make()
    assert unknown_plugins(made) == ("nosuch",)
    assert [plugin.name for plugin in enabled_plugins(made)] == ["env"]


def test_notes_begin_with_what_is_wrong_in_the_arguments() -> None:
    made = job().plugin("svc", "--publish-not-ready-addresses=maybe", "junk").plugin("ssh", "--no-root").task("a", 1)
    assert len(made.messages()) == 3
    assert sum(text.startswith("svc: argument") for text in made.messages()) == 2


def test_plugins_of_other_packages_come_last_by_name() -> None:
    found = catalogue(entry("raising", "Raising"), entry("good", "Good"))
    assert list(found.plugins)[-3:] == ["hcclrank", "good", "raising"]
    assert found.broken == {}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(entry("gone", "Nothing"), "cannot be loaded: AttributeError", id="attribute missing"),
        pytest.param(
            EntryPoint(name="gone", value="no_such_package:X", group="vcjob.plugins"),
            "cannot be loaded: ModuleNotFoundError",
            id="module missing",
        ),
        pytest.param(entry("gone", "catalogue"), "is not a subclass", id="no plugin"),
        pytest.param(entry("gone", "Good"), "calls itself 'good', not 'gone'", id="other name"),
        pytest.param(entry("gone", "BadFlags"), "has flags that are not", id="flags"),
        pytest.param(entry("gone", "BadRequires"), "has requires that are not", id="requires"),
        pytest.param(entry("svc", "Thief"), "takes a name that another plugin has", id="name of ours"),
    ],
)
def test_a_broken_package_is_reported_and_stops_nothing(broken: EntryPoint, reason: str) -> None:
    found = catalogue(broken, entry("good", "Good"))
    assert reason in found.broken[broken.name]
    assert found.plugins["good"] is Good
    assert found.plugins["svc"] is find_plugin("svc")


def guarded(plugin: type[Plugin]) -> Guarded:
    return Guarded(job().task("a", 1).make(), args={}, plugin=plugin)


def test_a_guarded_plugin_works_as_it_is() -> None:
    found = guarded(Good)
    pod = job().task("a", 1).pod("a")
    found.on_pod_create(pod)
    assert pod.containers[0]["env"] == [{"name": "SIZE", "value": "1"}]
    assert (found.name, found.requires, found.marked) == ("good", ("svc",), True)


def test_problems_and_notes_of_a_raising_plugin_become_text() -> None:
    found = guarded(Raising)
    assert found.problems() == ("plugin raising: problems failed with ValueError: one",)
    assert {note.reason for note in found.notes()} == {"PluginBroken"}


def test_a_removal_that_raises_takes_what_the_plugin_has_made() -> None:
    class Clinging(Good):
        def on_job_add(self) -> tuple[WantedObject, ...]:
            return (WantedObject(ref=ObjectRef(api_version="v1", kind="ConfigMap", name="c"), manifest={}),)

        def on_job_delete(self) -> tuple[ObjectRef, ...]:
            raise ValueError("no")

    found = guarded(Clinging)
    assert [ref.name for ref in found.on_job_delete()] == ["c"]
    assert [note.message for note in found.notes()] == ["plugin good: on_job_delete failed with ValueError: no"]
    assert guarded(Raising).on_job_delete() == ()


@pytest.mark.parametrize("hook", ["on_job_add", "on_job_update", "on_pod_create"])
def test_other_hooks_raise_an_error_that_names_plugin_and_hook(hook: str) -> None:
    arguments = [job().task("a", 1).pod("a")] if hook == "on_pod_create" else []
    with pytest.raises(PluginError) as caught:
        getattr(guarded(Raising), hook)(*arguments)
    assert (caught.value.plugin, caught.value.hook) == ("raising", hook)


def test_a_plugin_that_cannot_be_made_is_a_problem_of_the_job() -> None:
    assert "unbuildable: __init__ failed with KeyError" in guarded(Unbuildable).problems()[0]


def test_an_installed_package_adds_its_plugin_to_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "demo-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[vcjob.plugins]\ngood = {__name__}:Good\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.forget_catalogue()
    try:
        made = job().plugin("good", "--size=3", "--sise=4").task("a", 1)
        assert known_names()[-1] == "good"
        assert [plugin.name for plugin in enabled_plugins(made.make())] == ["svc", "good"]
        assert {"name": "SIZE", "value": "3"} in made.pod("a").containers[0]["env"]
        assert any("did you mean --size?" in text for text in made.messages())
    finally:
        monkeypatch.undo()
        registry.forget_catalogue()

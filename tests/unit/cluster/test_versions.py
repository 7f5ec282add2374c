"""The versions in the code are those that the Go modules pin, and no module names where it was fetched from."""

import re
from pathlib import Path

import pytest

from vcjob.cluster.gobuild import parse_go_version
from vcjob.cluster.paths import project_file
from vcjob.cluster.versions import GO_WHEEL_VERSION, KUBERNETES_VERSION, TOOLS, Tool


def go_mod(module: str) -> str:
    folder = project_file(f"build/controlplane/{module}")
    assert folder
    return (folder / "go.mod").read_text()


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_module_requires_the_version_of_the_tool(tool: Tool):
    required = dict(re.findall(r"^\s*(?:require )?(\S+) (v\S+)", go_mod(tool.module), re.MULTILINE))
    assert {version for path, version in required.items() if f"{tool.package}/".startswith(f"{path}/")} == {
        tool.version
    }
    assert f"\t{tool.package}\n" in go_mod(tool.module) or f"tool {tool.package}\n" in go_mod(tool.module)


def test_the_staging_modules_of_kubernetes_are_of_the_same_release():
    replaced = re.findall(r"=> (k8s\.io/\S+) (v\S+)", go_mod("kubernetes"))
    assert len(replaced) > 30
    assert {version for _, version in replaced} == {KUBERNETES_VERSION.replace("v1.", "v0.")}


@pytest.mark.parametrize("module", sorted({tool.module for tool in TOOLS}))
def test_the_go_of_the_wheel_is_new_enough(module: str):
    wanted = parse_go_version(go_mod(module))
    assert wanted and tuple(int(part) for part in GO_WHEEL_VERSION.split(".")) >= wanted


def test_no_module_file_names_a_proxy():
    folder = project_file("build/controlplane")
    assert folder
    for path in folder.rglob("go.*"):
        assert "://" not in Path(path).read_text()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("go version go1.26.8 linux/amd64", (1, 26, 8), id="a release"),
        pytest.param("go version go1.27rc1 linux/amd64", (1, 27), id="a candidate"),
        pytest.param("go 1.26.0", (1, 26, 0), id="a line of go.mod"),
        pytest.param("command not found", None, id="nothing"),
    ],
)
def test_a_go_version_is_read_from(text: str, version: tuple[int, ...] | None):
    assert parse_go_version(text) == version

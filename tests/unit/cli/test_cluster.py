"""`vcjob cluster` answers mistakes with a sentence and exit code 1. The rest is in tests/integration/cluster."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from vcjob.cli.cluster import cluster


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VCJOB_CLUSTER_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["status", "kubeconfig", "kubectl"])
def test_a_cluster_that_is_not_there_is_named_with_the_remedy(command: str):
    done = CliRunner().invoke(cluster, [command, "--name", "ghost"])
    assert done.exit_code == 1
    assert done.output == (
        "Error: no cluster named 'ghost' (there is none at all); start it with: vcjob cluster up --name ghost\n"
    )


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig"])
def test_a_bad_name_is_refused_by_every_command(command: str):
    done = CliRunner().invoke(cluster, [command, "--name", "Not/A/Name"])
    assert done.exit_code == 1
    assert "'Not/A/Name' cannot name a cluster" in done.output


def test_a_record_that_makes_no_sense_is_named(home: Path):
    (home / "odd").mkdir()
    (home / "odd" / "cluster.json").write_text("{}")
    done = CliRunner().invoke(cluster, ["status", "--name", "odd"])
    assert done.exit_code == 1
    assert "is not a record that this version of vcjob can read" in done.output


def test_a_folder_that_cannot_be_made_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VCJOB_CLUSTER_HOME", "/proc/nowhere")
    done = CliRunner().invoke(cluster, ["up"])
    assert done.exit_code == 1
    assert "/proc/nowhere" in done.output
    assert "Traceback" not in done.output

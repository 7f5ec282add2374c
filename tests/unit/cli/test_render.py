"""`vcjob render`: objects without a cluster, and errors that name what is wrong."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from vcjob.cli.render import render

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(render, list(arguments), input=text)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_renders_as_many_pods_as_it_has_replicas(example: Path) -> None:
    job = yaml.safe_load(example.read_text())
    result = run(str(example))
    assert result.exit_code == 0, result.output
    documents = list(yaml.safe_load_all(result.stdout))
    pods = [d for d in documents if d["kind"] == "Pod"]
    assert len(pods) == sum(task["replicas"] for task in job["spec"]["tasks"])


def test_objects_come_before_the_pods_that_need_them() -> None:
    kinds = [d["kind"] for d in yaml.safe_load_all(run(str(EXAMPLES / "plugin-svc.yaml")).stdout)]
    assert kinds[:3] == ["ConfigMap", "Service", "NetworkPolicy"]
    assert set(kinds[3:]) == {"Pod"}


def test_the_gang_scheduler_adds_its_group() -> None:
    result = run(str(EXAMPLES / "plugin-svc.yaml"), "--gang-scheduler", "volcano")
    assert "PodGroup" in [d["kind"] for d in yaml.safe_load_all(result.stdout)]


def test_env_is_a_table_with_the_values_that_a_container_sees() -> None:
    result = run(str(EXAMPLES / "pytorch.yaml"), "--env", "--pod", "pytorch-job-worker-1")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["RANK", "2"] in lines
    assert ["MASTER_ADDR", "pytorch-job-master-0.pytorch-job"] in lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [", "is no YAML", id="broken YAML"),
        pytest.param("kind: Pod", "holds no Job", id="another kind"),
        pytest.param("", "holds no Job", id="nothing"),
        pytest.param(
            "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: x}, spec: {tasks: []}}",
            "No task specified in job spec",
            id="a Job without tasks",
        ),
    ],
)
def test_wrong_input_gets_a_sentence(text: str, expected: str) -> None:
    result = run("-", text=text)
    assert result.exit_code == 1
    assert expected in result.output


def test_an_unknown_pod_is_named_with_those_that_there_are() -> None:
    result = run(str(EXAMPLES / "pytorch.yaml"), "--pod", "nope")
    assert result.exit_code == 1
    assert "no pod nope" in result.output
    assert "pytorch-job-master-0" in result.output

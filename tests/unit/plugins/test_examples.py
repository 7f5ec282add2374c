"""The examples are Jobs that their plugins accept without a word, and their scripts do what they say."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.api.job import Job
from vcjob.plugins.preview import data_of, preview_pod, visible_env
from vcjob.plugins.registry import enabled_plugins, unknown_plugins

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that a mapping has twice, as the API server does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is there twice {node.start_mark}"
        return super().construct_mapping(node, deep)


def load(path: Path) -> Job:
    raw = yaml.load(path.read_text(), StrictLoader)
    raw["metadata"]["namespace"] = "ns"
    return Job.model_validate(raw)


every_example = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])


@every_example
def test_an_example_begins_with_what_it_shows(path: Path) -> None:
    assert path.read_text().startswith("# ")


@every_example
def test_an_example_is_accepted_without_a_word(path: Path) -> None:
    job = load(path)
    pods = [preview_pod(job, task=task, index=i) for task in job.spec.tasks for i in range(task.replicas)]
    assert unknown_plugins(job) == ()
    assert [text for plugin in enabled_plugins(job) for text in plugin.problems()] == []
    assert [note for plugin in enabled_plugins(job) for note in plugin.notes()] == []
    assert [note for pod in pods for note in pod.notes] == []
    assert 1 <= job.spec.min_available <= job.spec.total_replicas == len(pods)


@pytest.mark.parametrize(
    ("path", "task", "index"),
    [
        pytest.param(path, task, index, id=f"{path.stem} {task}-{index}")
        for path in EXAMPLES
        if path.stem.startswith("tensorflow-dist-mnist")
        for task, index in (("ps", 0), ("worker", 1))
    ],
)
def test_the_script_of_the_training_builds_a_valid_config(path: Path, task: str, index: int, tmp_path: Path) -> None:
    job = load(path)
    found = job.task(task)
    assert found is not None
    wanted = [wanted for plugin in enabled_plugins(job) for wanted in plugin.on_job_add()]
    config_map = next(made for made in wanted if made.ref.kind == "ConfigMap")
    for key, value in data_of(config_map).items():
        (tmp_path / key).write_text(value)
    container = preview_pod(job, task=found, index=index).containers[0]
    script = container["command"][2].replace("/etc/volcano", str(tmp_path))
    script = script.replace("python /var/tf_dist_mnist/dist_mnist.py", 'printf %s "$TF_CONFIG"')
    env = {"PATH": "/usr/bin:/bin"} | visible_env(container, wanted)
    run = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {
        "cluster": {
            "ps": ["tensorflow-dist-mnist-ps-0.tensorflow-dist-mnist:2222"],
            "worker": [f"tensorflow-dist-mnist-worker-{i}.tensorflow-dist-mnist:2222" for i in range(2)],
        },
        "task": {"type": task, "index": index},
        "environment": "cloud",
    }

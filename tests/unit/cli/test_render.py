"""`vcjob render`: objects without a cluster, and errors that name what is wrong."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from vcjob.cli.documents import Loader
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


@pytest.mark.parametrize(("gang", "expected"), [("volcano", "mine"), ("none", None)])
def test_pods_go_to_the_gang_scheduler_by_its_name(gang: str, expected: str | None) -> None:
    result = run(str(EXAMPLES / "plugin-env.yaml"), "--gang-scheduler", gang, "--scheduler-name", "mine")
    pods = [d for d in yaml.safe_load_all(result.stdout) if d["kind"] == "Pod"]
    assert {pod["spec"].get("schedulerName") for pod in pods} == {expected}


def test_env_is_a_table_with_the_values_that_a_container_sees() -> None:
    result = run(str(EXAMPLES / "pytorch.yaml"), "--env", "--pod", "pytorch-job-worker-1")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["RANK", "2"] in lines
    assert ["MASTER_ADDR", "pytorch-job-master-0.pytorch-job"] in lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [", "is no YAML and no JSON", id="broken YAML"),
        pytest.param("[" * 3000, "is nested too deeply", id="nested without end"),
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


JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, annotations: {made: 2026-11-29}}
spec:
  plugins: {svc: ["--wrong"]}
  tasks:
  - name: worker
    replicas: 1
    template:
      spec:
        containers: [{name: main, image: i}]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        pytest.param("tasks:", "taskss:", 'unknown field "spec.taskss"; did you mean tasks?', id="of the spec"),
        pytest.param(
            "containers:",
            "containrs:",
            'unknown field "spec.tasks[0].template.spec.containrs"; did you mean containers?',
            id="of a Pod",
        ),
        pytest.param("replicas: 1", "replicas: one", "spec.tasks[0].replicas: must be of type integer", id="type"),
        pytest.param("replicas: 1", "replicas: 1\n    replicas: 2", 'key "replicas" already set in map', id="twice"),
    ],
)
def test_what_kubectl_would_refuse_is_refused(right: str, wrong: str, sentence: str) -> None:
    result = run("-", text=JOB.replace(right, wrong, 1))
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


@pytest.mark.parametrize(("validate", "warned"), [("warn", True), ("ignore", False)])
def test_unknown_fields_are_dropped_on_demand(validate: str, warned: bool) -> None:
    result = run("-", f"--validate={validate}", text=JOB.replace("image: i", "image: i, imagee: j"))
    assert result.exit_code == 0
    assert "imagee" not in result.stdout
    assert ('warning: unknown field "spec.tasks[0].template.spec.containers[0].imagee"' in result.stderr) is warned


@pytest.mark.parametrize("replicas", ["", "replicas: 0"])
def test_a_task_without_replicas_is_told_of(replicas: str) -> None:
    result = run("-", text=JOB.replace("replicas: 1", replicas))
    assert "note: spec.tasks[0]: task worker has no replicas, so no Pod is made for it" in result.stderr
    assert "kind: Pod\n" not in result.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "sentences"),
    [
        pytest.param("name: worker", "name: Worker", ['spec.tasks[0].name: "Worker": should match'], id="pattern"),
        pytest.param("replicas: 1", "maxRetry: -2", ["spec.tasks[0].maxRetry: -2: should be greater"], id="minimum"),
        pytest.param(
            "  tasks:", "  networkTopology: {mode: weird}\n  tasks:", ["supported values: hard, soft"], id="choices"
        ),
        pytest.param("made: 2026-11-29", "mäde: now", ['metadata.annotations: "mäde"'], id="key of an annotation"),
        pytest.param(
            "replicas: 1",
            "maxRetry: -2\n    minAvailable: 3",
            ["spec.tasks[0].maxRetry: -2", "spec.tasks[0].minAvailable: 3"],
            id="by schema and by admission",
        ),
    ],
)
def test_what_the_schema_of_the_crd_refuses_is_refused(right: str, wrong: str, sentences: list[str]) -> None:
    result = run("-", text=JOB.replace(right, wrong, 1))
    assert (result.exit_code, result.stdout) == (1, "")
    assert [sentence for sentence in sentences if sentence not in result.stderr] == []


def test_what_the_webhook_mends_is_not_refused_by_the_schema() -> None:
    result = run("-", text=JOB.replace("name: worker", 'name: ""', 1))
    assert result.exit_code == 0
    assert "name: train-default0-0" in result.stdout


def test_a_number_that_is_too_large_is_named_once_and_where_it_stands() -> None:
    result = run("-", text=JOB.replace("replicas: 1", "replicas: 9999999999"))
    assert "spec.tasks[0].replicas: 9999999999: " in result.stderr
    assert "minAvailable" not in result.stderr


@pytest.mark.parametrize("flag", ["--namespace=a_b", "--scheduler-name=BAD_"])
def test_a_flag_that_is_no_name_is_refused(flag: str) -> None:
    result = run("-", flag, text=JOB)
    assert result.exit_code == 2
    assert flag.partition("=")[0] in result.stderr


def test_a_generated_name_is_made_up() -> None:
    result = run("-", text=JOB.replace("name: train", "generateName: train-", 1))
    assert result.exit_code == 0
    assert "name: train-xxxxx-worker-0" in result.stdout


def test_a_negative_number_is_named_once_and_where_it_stands() -> None:
    result = run("-", text=JOB.replace("replicas: 1", "replicas: -1"))
    assert "spec.tasks[0].replicas: -1: Input should be greater than or equal to 0" in result.stderr
    assert "minAvailable" not in result.stderr


def test_what_is_odd_is_told_with_its_field() -> None:
    assert 'note: spec.plugins.svc: argument "--wrong" is ignored' in run("-", text=JOB).stderr


def test_an_unknown_pod_is_named_with_those_that_there_are() -> None:
    result = run(str(EXAMPLES / "pytorch.yaml"), "--pod", "nope")
    assert result.exit_code == 1
    assert "no pod 'nope'" in result.output
    assert "the pods: pytorch-job-master-0, pytorch-job-worker-0, pytorch-job-worker-1\n" in result.output


def test_each_job_of_a_file_is_rendered_and_judged_by_itself() -> None:
    jobs = [JOB.replace("name: train", f"name: {name}", 1) for name in ("first", "second", "third")]
    result = run("-", text="\n---\n".join([jobs[0], jobs[1].replace("name: worker", "name: Worker"), jobs[2]]))
    assert result.exit_code == 1
    assert "Job second would be refused" in result.stderr
    pods = [d["metadata"]["name"] for d in yaml.safe_load_all(result.stdout) if d["kind"] == "Pod"]
    assert pods == ["first-worker-0", "third-worker-0"]


@pytest.mark.parametrize("metadata", ["[1]", "word", "5"])
def test_metadata_of_another_type_are_refused_and_keep_no_other_job(metadata: str) -> None:
    bad = JOB.replace("{name: train, annotations: {made: 2026-11-29}}", metadata)
    result = run("-", text=f"{bad}\n---\n{JOB}")
    assert result.exit_code == 1
    assert "metadata: must be of type object" in result.stderr
    assert "name: train-worker-0" in result.stdout


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("10:30", "10:30", id="a time"),
        pytest.param("2026-11-29", "2026-11-29", id="a date"),
        pytest.param("1.2.3", "1.2.3", id="a version"),
        pytest.param("1e", "1e", id="no number"),
        pytest.param("y", None, id="a boolean"),
        pytest.param("Off", None, id="another boolean"),
        pytest.param("1e3", None, id="a number with an exponent"),
        pytest.param("0o17", None, id="an octal number"),
        pytest.param("0x1F", None, id="a hexadecimal number"),
    ],
)
def test_words_without_quotes_are_what_kubectl_takes_them_for(value: str, shown: str | None) -> None:
    result = run("-", "--env", text=JOB.replace("image: i", f"image: i, env: [{{name: A, value: {value}}}]"))
    if shown is None:
        assert "env[0].value: must be of type string" in result.stderr
    else:
        assert ["A", shown] in [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize("value", ["y", "1e3", "0o17", "10:30", "null", "true", "5", "0.5", "~", "2026-11-29"])
def test_a_text_that_kubectl_would_take_for_something_else_stands_between_quotes(value: str) -> None:
    result = run("-", text=JOB.replace("image: i", f"image: i, env: [{{name: A, value: '{value}'}}]"))
    (pod,) = (d for d in yaml.load_all(result.stdout, Loader=Loader) if d["kind"] == "Pod")
    assert {"name": "A", "value": value} in pod["spec"]["containers"][0]["env"]


@pytest.mark.parametrize("number", ["2.0", "2e0", "+2", "0b10", "0x2", "02"])
def test_a_whole_number_may_be_written_in_any_way(number: str) -> None:
    result = run("-", text=JOB.replace("replicas: 1", f"replicas: {number}"))
    assert (result.exit_code, "name: train-worker-1" in result.stdout) == (0, True)


def test_a_large_number_keeps_its_digits() -> None:
    number = "9007199254740993"
    result = run("-", text=JOB.replace("containers:", f"terminationGracePeriodSeconds: {number}\n        containers:"))
    assert f"terminationGracePeriodSeconds: {number}\n" in result.stdout


def test_a_key_is_a_text() -> None:
    labels = "labels: {1: b, true: c}, annotations"
    result = run("-", text=JOB.replace("annotations", labels, 1))
    assert result.exit_code == 0, result.stderr


def test_a_tag_that_lies_gets_a_sentence() -> None:
    assert "is no YAML" in run("-", text=JOB.replace("replicas: 1", "replicas: !!int x")).output


def test_null_in_the_metadata_is_absent() -> None:
    result = run("-", text=JOB.replace("{name: train,", "{name: train, namespace: null, labels: null,"))
    assert result.exit_code == 0


@pytest.mark.parametrize("between", ["", "\n", "\n---\n"])
def test_json_is_read_as_well_one_object_after_the_other(between: str) -> None:
    jobs = [yaml.safe_load(JOB.replace("name: train", f"name: {name}").replace("2026-11-29", "x")) for name in "ab"]
    result = run("-", text=between.join(json.dumps(job, indent="\t") for job in jobs))
    pods = [d["metadata"]["name"] for d in yaml.safe_load_all(result.stdout) if d["kind"] == "Pod"]
    assert (result.exit_code, pods) == (0, ["a-worker-0", "b-worker-0"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param('{"kind": "Job", "kind": "Job"}', 'key "kind" already set in map', id="a key twice"),
        pytest.param('{"kind": NaN}', "NaN is no number of JSON", id="no number"),
        pytest.param('{"kind": "Job",\n "spec": [}', "line 2, column 11", id="broken"),
        pytest.param('{"kind": "Pod"}\n{"kind": "Pod"}\na: [', "line 3, column 5", id="broken after others"),
    ],
)
def test_bad_json_gets_a_sentence(text: str, sentence: str) -> None:
    result = run("-", text=text)
    assert (result.exit_code, sentence in result.stderr) == (1, True), result.stderr


def test_a_list_is_the_objects_in_it() -> None:
    items = [yaml.safe_load(JOB.replace("name: train", f"name: {name}").replace("2026-11-29", "x")) for name in "ab"]
    result = run("-", text=yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [*items, None]}))
    pods = [d["metadata"]["name"] for d in yaml.safe_load_all(result.stdout) if d["kind"] == "Pod"]
    assert (result.exit_code, pods) == (0, ["a-worker-0", "b-worker-0"])


def test_what_cannot_be_read_keeps_no_job_before_it() -> None:
    result = run("-", text=f"{JOB}\n---\na: [b\n---\n{JOB}")
    assert (result.exit_code, "is no YAML" in result.stderr) == (1, True)
    assert "name: train-worker-0" in result.stdout


def test_a_pod_is_looked_for_in_all_jobs_of_a_file() -> None:
    text = "\n---\n".join([JOB, JOB.replace("name: train", "name: other", 1)])
    result = run("-", "--pod", "other-worker-0", text=text)
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "other-worker-0"


def test_a_container_that_stands_there_twice_is_named_once() -> None:
    result = run("-", text=JOB.replace("containers: [", "containers: [{name: main, image: i}, ", 1))
    assert result.stderr.count("Duplicate value") == 1

"""The schema of the values: what it refuses, and that it knows every value there is."""

import json
import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.unit.deploy.chart import CHART, KUBE_VERSION, VALUES, Objects, helm

WORDS = (
    *("name", "namespace", "serviceAccountName", "priorityClassName", "secretName", "args", "values"),
    *("value", "image", "imagePullPolicy", "failurePolicy", "interval", "matchNames"),
)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def default_values() -> Any:
    """Return values.yaml."""
    return yaml.safe_load((CHART / "values.yaml").read_text())


def merged(base: Any, over: Any) -> Any:
    """Return values over others as helm puts them."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {key: merged(base.get(key), value) for key, value in over.items()}


@pytest.mark.parametrize("path", sorted(VALUES.glob("*.yaml")), ids=lambda path: path.stem)
def test_good_values_pass(path: Any) -> None:
    Draft7Validator(SCHEMA).validate(merged(default_values(), yaml.safe_load(path.read_text())))


def test_the_defaults_pass_and_name_every_value_of_the_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    Draft7Validator(SCHEMA).validate(default_values())

    def names(schema: Any, values: Any, at: str) -> list[str]:
        if not isinstance(values, dict) or "properties" not in schema:
            return []
        missing = [f"{at}.{key}" for key in schema["properties"] if key not in values]
        return missing + [
            name for key, part in schema["properties"].items() for name in names(part, values.get(key), f"{at}.{key}")
        ]

    free = (".global", ".resources.claims", ".webhook.resources.claims")
    assert [name for name in names(SCHEMA, default_values(), "") if name not in free] == []


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        pytest.param("gangScheduler=kueue", "gangScheduler", id="an unknown gang scheduler"),
        pytest.param("logLevel=verbose", "logLevel", id="an unknown log level"),
        pytest.param("replcas=3", "replcas", id="a misspelt value"),
        pytest.param("webhook.replica=3", "replica", id="a misspelt value further down"),
        pytest.param("replicas=two", "replicas", id="a word for a number"),
        pytest.param("webhook.replicas=0", "webhook", id="no webhook although it is on"),
        pytest.param("webhook.timeoutSeconds=60", "timeoutSeconds", id="more seconds than the API server waits"),
        pytest.param("imagePullPolicy=Sometimes", "imagePullPolicy", id="an unknown pull policy"),
        pytest.param("watchNamespaces={Team_A}", "watchNamespaces", id="no name of a namespace"),
        pytest.param("image.digest=latest", "digest", id="a tag for a digest"),
        pytest.param("extraArgs={debug}", "extraArgs", id="an argument without dashes"),
        pytest.param("extraEnv[0].name=A,extraEnv[0].value=1", "extraEnv", id="a number for a variable"),
        pytest.param(r"commonLabels.app\.kubernetes\.io/name=x", "commonLabels", id="a label that the chart sets"),
        pytest.param(r"podLabels.app\.kubernetes\.io/component=x", "podLabels", id="a label that finds the Pods"),
        pytest.param("webhook=null", "webhook", id="no values of the webhook"),
        pytest.param("networkPolicy.apiServerPorts=null", "apiServerPorts", id="no port, which would be any"),
        pytest.param("image=null", "image", id="no image"),
        pytest.param("metrics.serviceMonitor=null", "serviceMonitor", id="no values further down"),
        pytest.param("image.repository=null", "repository", id="no name of the image"),
        pytest.param("watchNamespaces=null", "watchNamespaces", id="no list of namespaces"),
        pytest.param("podLabels=null", "podLabels", id="no labels of Pods"),
        pytest.param("commonLabels=null", "commonLabels", id="no labels of everything"),
        pytest.param("gangScheduler=null", "gangScheduler", id="no word on gangs"),
        pytest.param("schedulerName=null", "schedulerName", id="no scheduler"),
        pytest.param("logLevel=null", "logLevel", id="no log level"),
        pytest.param("logFormat=null", "logFormat", id="no log format"),
        pytest.param("podDisruptionBudget.maxUnavailable=half", "maxUnavailable", id="a word for a share"),
    ],
)
def test_helm_refuses_bad_values_and_names_them(assignment: str, named: str) -> None:
    done = helm("template", "vcjob", str(CHART), f"--kube-version={KUBE_VERSION}", "--set", assignment)
    assert done.returncode != 0
    assert named in done.stderr
    assert "values don't meet the specifications of the schema" in done.stderr


def test_a_long_name_of_a_release_makes_names_that_may_be() -> None:
    arguments = ("--set=webhook.enabled=true", "--set=metrics.dashboard.enabled=true")
    done = helm("template", "r" * 53, str(CHART), f"--kube-version={KUBE_VERSION}", *arguments)
    assert done.returncode == 0, done.stderr
    names = [o["metadata"]["name"] for o in Objects(done.stdout).of("Service")]
    assert len(names) == len(set(names)) > 1
    assert [name for name in names if len(name) > 63] == []


def test_a_name_that_looks_like_a_number_is_a_text_everywhere() -> None:
    numbers = ("fullnameOverride=12", "nameOverride=13", "serviceAccount.name=14", "priorityClassName=15")
    arguments = [f"--set-string={number}" for number in numbers]
    arguments += ["--set-string=watchNamespaces={123,456}", "--set=webhook.enabled=true", "--namespace=16"]
    arguments += ["--set-string=image.repository=18,image.tag=19", "--set=metrics.serviceMonitor.enabled=true"]
    arguments += ["--set=networkPolicy.enabled=true,gangScheduler=volcano"]
    done = helm("template", "17", str(CHART), f"--kube-version={KUBE_VERSION}", *arguments)
    assert done.returncode == 0, done.stderr
    seen: list[str] = []

    def look(value: Any, at: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                look(inner, f"{at}.{key}")
        elif isinstance(value, list):
            for inner in value:
                look(inner, at)
        elif at.rpartition(".")[2] in WORDS or ".labels." in at or ".matchLabels." in at:
            seen.append(at)
            assert isinstance(value, str), f"{at}: {value}"

    for found in Objects(done.stdout).all:
        if found["kind"] != "CustomResourceDefinition":
            look(found, found["kind"])
    assert len(seen) > 50


def test_no_text_is_written_bare() -> None:
    """Whatever it holds: also where no test renders it, as in the notes."""
    bare = re.compile(r"(?:value|image|[nN]amespace|[pP]olicy|interval|matchNames): \[?\{\{(?![^}]*\| quote)")
    templates = [path for path in (CHART / "templates").rglob("*") if path.is_file()]
    found = [
        f"{path.name}: {line}" for path in templates for line in path.read_text().splitlines() if bare.search(line)
    ]
    assert len(templates) > 10
    assert found == []


def test_every_value_is_explained_or_speaks_for_itself() -> None:
    """Each block of values.yaml has a comment, for people who read nothing else."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    assert sum(line.lstrip().startswith("# --") for line in lines) >= 30

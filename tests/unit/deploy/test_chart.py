"""The chart: what it installs by default, and what each group of values changes."""

import json
import subprocess
from typing import Any

import pytest
import yaml
from tests.unit.deploy.chart import CHART, KUBE_VERSION, ROOT, VALUES, find_helm, helm, render

from vcjob.operator.preflight import list_needs
from vcjob.webhook.registration import configuration
from vcjob.webhook.routes import WebhookKind, routes_of

ALL_VALUES = ["", *sorted(path.stem for path in VALUES.glob("*.yaml"))]


def pod_specs(values: str) -> list[Any]:
    """Return the Pod specs of everything that the chart runs."""
    objects = render(values=values)
    templates = [deployment["spec"]["template"]["spec"] for deployment in objects.of("Deployment")]
    return [*templates, *(pod["spec"] for pod in objects.of("Pod"))]


def rules(objects: Any, kind: str, name: str) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of a role."""
    return {
        (group, resource, verb)
        for rule in objects.get(kind, name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("values", ALL_VALUES)
def test_helm_has_nothing_to_say_about_the_chart(values: str) -> None:
    files = ("-f", str(VALUES / f"{values}.yaml")) if values else ()
    done = helm("lint", "--strict", f"--kube-version={KUBE_VERSION}", str(CHART), *files)
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("folder", ["crds", "rbac"])
def test_the_chart_carries_the_files_of_deploy(folder: str) -> None:
    ours = {path.name: path.read_text() for path in (ROOT / "deploy" / folder).glob("*.yaml")}
    copies = {path.name: path.read_text() for path in (CHART / "files" / folder).glob("*.yaml")}
    assert copies == ours, "run: make chart-crds"


def test_crds_are_those_of_deploy_and_are_kept() -> None:
    crds = render("--set", "gangScheduler=volcano").of("CustomResourceDefinition")
    assert len(crds) == 4
    for crd in crds:
        source = yaml.safe_load((ROOT / f"deploy/crds/{crd['metadata']['name']}.yaml").read_text())
        assert crd["spec"] == source["spec"]
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param((), {"jobs.batch.volcano.sh", "commands.bus.volcano.sh"}, id="without gangs no PodGroups"),
        pytest.param(("--set", "crds.install=false"), set(), id="none where Volcano's are there"),
    ],
)
def test_crds_follow_the_values(arguments: tuple[str, ...], names: set[str]) -> None:
    assert {crd["metadata"]["name"] for crd in render(*arguments).of("CustomResourceDefinition")} == names


def test_crds_go_with_the_release_when_they_are_not_to_be_kept() -> None:
    for crd in render("--set", "crds.keep=false").of("CustomResourceDefinition"):
        assert "helm.sh/resource-policy" not in crd["metadata"].get("annotations", {})


@pytest.mark.parametrize("values", ALL_VALUES)
def test_every_pod_is_restricted(values: str) -> None:
    for spec in pod_specs(values):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_the_operator_has_every_right_that_it_asks_for() -> None:
    for gang in ("none", "volcano"):
        granted = rules(render("--set", f"gangScheduler={gang}"), "ClusterRole", "vcjob-operator")
        needs = {
            (need.group, f"{need.resource}/{need.subresource}" if need.subresource else need.resource, verb)
            for need in list_needs(groups=gang == "volcano", elects=False)
            for verb in need.verbs
        }
        assert needs <= granted


def test_the_rights_of_gangs_come_with_gangs_only() -> None:
    without = rules(render(), "ClusterRole", "vcjob-operator")
    whole = rules(render("--set", "gangScheduler=volcano"), "ClusterRole", "vcjob-operator")
    assert {resource for _, resource, _ in whole - without} == {"podgroups", "queues", "priorityclasses"}
    documents = yaml.safe_load_all((ROOT / "deploy/rbac/operator.yaml").read_text())
    (source,) = [document for document in documents if document["kind"] == "ClusterRole"]
    listed = {
        (g, r, v)
        for rule in source["rules"]
        for g in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
    }
    assert whole == listed


def test_a_namespaced_operator_has_no_rights_elsewhere() -> None:
    objects = render(values="namespaced")
    assert {role["metadata"]["name"] for role in objects.of("ClusterRole")} == {"vcjob-webhook"}
    names = {(r["metadata"]["namespace"], r["metadata"]["name"]) for r in objects.of("Role")}
    assert {("team-a", "vcjob-operator"), ("team-b", "vcjob-operator")} <= names
    args = objects.get("Deployment", "vcjob-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--namespace=team-a", "--namespace=team-b"} <= set(args)
    (webhook,) = objects.get("ValidatingWebhookConfiguration", "vcjob")["webhooks"]
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a", "team-b"]


def test_a_namespaced_operator_with_gangs_reads_queues_and_nothing_else_of_the_cluster() -> None:
    objects = render("--set", "gangScheduler=volcano", values="namespaced")
    assert {r for _, r, _ in rules(objects, "ClusterRole", "vcjob-operator")} == {"queues", "priorityclasses"}


KINDS = [
    pytest.param((), "", ("jobs",), id="without gangs"),
    pytest.param(("--set", "gangScheduler=volcano"), "", ("jobs", "podgroups", "queues"), id="with gangs"),
    pytest.param(("--set", "gangScheduler=volcano"), "namespaced", ("jobs", "podgroups"), id="with gangs, namespaced"),
    pytest.param(("--set", "webhook.admission={queues}"), "", ("queues",), id="as asked for"),
]


@pytest.mark.parametrize("kind", list(WebhookKind))
@pytest.mark.parametrize(("arguments", "values", "plurals"), KINDS)
def test_the_webhook_configurations_are_those_of_the_program(
    kind: WebhookKind, arguments: tuple[str, ...], values: str, plurals: tuple[str, ...]
) -> None:
    made = render(*arguments, values=values).get(kind.value, "vcjob")["webhooks"]
    wanted = configuration(kind, name="vcjob", routes=routes_of(plurals), url="https://x", authority=b"")["webhooks"]
    left_out = {"clientConfig", "namespaceSelector"}
    assert [{k: v for k, v in hook.items() if k not in left_out} for hook in made] == [
        {k: v for k, v in hook.items() if k not in left_out} for hook in wanted
    ]
    paths = [hook["clientConfig"]["service"]["path"] for hook in made]
    assert paths == [hook["clientConfig"]["url"].removeprefix("https://x") for hook in wanted]


@pytest.mark.parametrize(("arguments", "values", "plurals"), KINDS)
def test_the_webhook_answers_for_what_it_is_asked(
    arguments: tuple[str, ...], values: str, plurals: tuple[str, ...]
) -> None:
    objects = render(*arguments, values=values)
    args = objects.get("Deployment", "vcjob-webhook")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [arg for arg in args if arg.startswith("--admission")] == [f"--admission={plural}" for plural in plurals]


def test_the_webhook_reads_only_what_its_rules_ask_for() -> None:
    managed = {("admissionregistration.k8s.io", f"{kind}webhookconfigurations") for kind in ("mutating", "validating")}

    def reads(*arguments: str, values: str = "") -> set[tuple[str, str]]:
        found = rules(render(*arguments, values=values), "ClusterRole", "vcjob-webhook")
        return {(group, resource) for group, resource, _ in found} - managed

    queues, namespaces = ("scheduling.volcano.sh", "queues"), ("", "namespaces")
    assert reads() == set()
    assert reads("--set", "gangScheduler=volcano") == {queues, namespaces}
    assert reads("--set", "webhook.admission={queues}") == {queues}
    assert reads("--set", "gangScheduler=volcano,webhook.admission={jobs}") == {queues}


def test_a_namespaced_webhook_reads_its_own_namespaces_only() -> None:
    role = render("--set", "gangScheduler=volcano", values="namespaced").get("ClusterRole", "vcjob-webhook")
    (rule,) = [rule for rule in role["rules"] if rule["resources"] == ["namespaces"]]
    assert rule["resourceNames"] == ["team-a", "team-b"]


def test_an_upgrade_leaves_the_certificates_of_the_webhook_alone() -> None:
    objects = render()
    assert "data" not in objects.get("Secret", "vcjob-webhook-cert")
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in objects.get(kind, "vcjob")["webhooks"]:
            assert "caBundle" not in hook["clientConfig"]


def test_cert_manager_takes_the_place_of_the_webhooks_own_certificates() -> None:
    objects = render(values="everything")
    args = objects.get("Deployment", "vcjob-webhook")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--manage-certs" not in args
    assert objects.get("Certificate", "vcjob-webhook")["spec"]["secretName"] == "vcjob-webhook-cert"
    assert not [role for role in objects.of("Role") if role["metadata"]["name"] == "vcjob-webhook"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = objects.get(kind, "vcjob")["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "vcjob-system/vcjob-webhook"}


def test_two_releases_keep_out_of_each_others_way() -> None:
    first = {(o["kind"], o["metadata"]["name"]) for o in render("--set", "crds.install=false").all}
    second = {
        (o["kind"], o["metadata"]["name"])
        for o in render("--set", "crds.install=false", "--set", "fullnameOverride=other").all
    }
    assert not first & second


def test_one_replica_has_no_disruption_budget() -> None:
    assert not render(values="bare").of("PodDisruptionBudget")
    assert len(render().of("PodDisruptionBudget")) == 2


def test_bare_is_bare() -> None:
    assert {o["kind"] for o in render(values="bare").all} == {"CustomResourceDefinition", "Deployment"}


def test_the_selector_never_changes_with_a_version() -> None:
    for deployment in render(values="everything").of("Deployment"):
        assert deployment["spec"]["selector"]["matchLabels"].keys() == {
            "app.kubernetes.io/name",
            "app.kubernetes.io/instance",
            "app.kubernetes.io/component",
        }


def test_common_labels_are_on_everything() -> None:
    for thing in render(values="everything").all:
        assert thing["metadata"]["labels"]["example.org/cost"] == "shared", thing["metadata"]


def test_viewer_and_editor_join_the_roles_of_the_cluster() -> None:
    labels = render().get("ClusterRole", "vcjob-editor")["metadata"]["labels"]
    assert labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert labels["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
    assert (
        "rbac.authorization.k8s.io/aggregate-to-view"
        in render().get("ClusterRole", "vcjob-viewer")["metadata"]["labels"]
    )


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads(render(values="everything").get("ConfigMap", "vcjob-dashboard")["data"]["vcjob.json"])
    sources = "".join(path.read_text() for path in (ROOT / "src/vcjob/operator").glob("*.py"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name,) = {word for word in words(target["expr"]) if "_" in word and not word.startswith("histogram")}
            stem = name.removesuffix("_bucket").removesuffix("_total")
            assert stem in sources or stem.startswith("process_"), name


def words(expression: str) -> list[str]:
    """Return the identifiers of a PromQL expression."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in expression).split()


def test_the_test_pod_runs_what_is_in_the_chart() -> None:
    (pod,) = render().of("Pod")
    script = pod["spec"]["containers"][0]["args"][0]
    compile(script, "test.py", "exec")
    assert script == (CHART / "files/test.py").read_text()


def test_the_image_can_be_pinned_by_its_digest() -> None:
    digest = "sha256:" + "a" * 64
    objects = render("--set", f"image.repository=example.org/vcjob,image.digest={digest}")
    image = objects.get("Deployment", "vcjob-operator")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"example.org/vcjob@{digest}"


def test_the_plain_manifests_are_those_of_the_chart() -> None:
    text = (ROOT / "deploy/manifests/vcjob.yaml").read_text()
    found = {(o["kind"], o["metadata"]["name"]): o for o in yaml.load_all(text, yaml.CSafeLoader)}
    wanted = {(o["kind"], o["metadata"]["name"]): o for o in render("--set", "tests.enabled=false", "--no-hooks").all}
    assert found.pop(("Namespace", "vcjob-system"))
    assert found.keys() == wanted.keys(), "run: make manifests"
    for key, thing in wanted.items():
        assert found[key].get("spec") == thing.get("spec"), f"run: make manifests ({key})"
        assert found[key].get("rules") == thing.get("rules"), f"run: make manifests ({key})"


def test_the_plain_manifests_say_who_manages_them() -> None:
    """That is kubectl: no release of Helm stands behind them."""
    text = (ROOT / "deploy/manifests/vcjob.yaml").read_text()
    objects = [o for o in yaml.load_all(text, yaml.CSafeLoader) if o["kind"] != "Namespace"]
    assert {o["metadata"]["labels"]["app.kubernetes.io/managed-by"] for o in objects} == {"kubectl"}


def test_the_script_says_it_too() -> None:
    """What it replaces has to be what the chart writes."""
    made = subprocess.run(
        (ROOT / "scripts/manifests", find_helm(), CHART), capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "managed-by: kubectl" in made
    assert "Helm" not in {line.rpartition(": ")[2].strip('"') for line in made.splitlines() if "managed-by:" in line}

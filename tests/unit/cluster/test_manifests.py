"""What the project ships for a cluster."""

from vcjob.cluster.manifests import OPERATOR_USER
from vcjob.cluster.paths import project_file


def test_the_operator_has_the_name_that_audit_logs_show():
    assert OPERATOR_USER == "system:serviceaccount:vcjob-system:vcjob-operator"


def test_the_checkout_brings_crds_and_rights():
    for folder in ("deploy/crds", "deploy/rbac"):
        found = project_file(folder)
        assert found and list(found.glob("*.yaml"))

"""The rights that are asked for are those that deploy/rbac grants."""

from pathlib import Path

import yaml

from vcjob.operator.preflight import Scope, list_needs

RBAC = Path(__file__).parents[3] / "deploy/rbac/operator.yaml"


def granted(kind: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every rule of the operator's roles of a kind."""
    documents = [d for d in yaml.safe_load_all(RBAC.read_text()) if d["kind"] == kind]
    return {
        (group, resource, verb)
        for document in documents
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked_for(*scopes: Scope) -> set[tuple[str, str, str]]:
    return {
        (need.group, f"{need.resource}/{need.subresource}".removesuffix("/"), verb)
        for need in list_needs(groups=True, elects=True)
        if need.scope in scopes
        for verb in need.verbs
    }


def test_no_verb_is_missing_and_none_is_spare():
    assert granted("ClusterRole") == asked_for(Scope.WATCHED, Scope.CLUSTER)
    assert granted("Role") == asked_for(Scope.LEASE)


def test_without_gangs_and_election_less_is_needed():
    without = {need.resource for need in list_needs(groups=False, elects=False)}
    assert not without & {"podgroups", "queues", "priorityclasses", "leases"}

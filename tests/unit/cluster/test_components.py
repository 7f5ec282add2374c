"""Command lines: on loopback, one log each, and an audit log only on request."""

import re

import pytest
from tests.unit.cluster.builders import layout

from vcjob.cluster.components import CONTROL_PLANE, component
from vcjob.cluster.versions import KUBE_APISERVER, KUBECTL, TOOLS, Tool


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool is not KUBECTL], ids=lambda tool: tool.name)
def test_no_component_listens_elsewhere_than_on_loopback(tool: Tool):
    command = component(tool, layout=layout()).command
    for flag in command[1:]:
        if re.match(r"--(bind-address|advertise-address|node-ip)=", flag):
            assert flag.endswith("=127.0.0.1")
        if "urls=" in flag:
            assert "=unix://" in flag


def test_every_component_has_a_log_of_its_own():
    assert len({component(tool, layout=layout()).log for tool in CONTROL_PLANE}) == len(CONTROL_PLANE)


@pytest.mark.parametrize("audit", [True, False])
def test_the_audit_log_is_there_on_request(audit: bool):
    command = component(KUBE_APISERVER, layout=layout(audit=audit)).command
    assert any(flag.startswith("--audit-log-path=") for flag in command) == audit


def test_the_users_flags_of_the_api_server_win():
    command = component(KUBE_APISERVER, layout=layout(apiserver_flags={"authorization-mode": "AlwaysAllow"})).command
    assert [flag for flag in command if flag.startswith("--authorization-mode=")] == [
        "--authorization-mode=AlwaysAllow"
    ]

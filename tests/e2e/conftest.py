"""Fixtures of the tests with real Pods: the cluster that `make kind-up` has made, and a namespace for each test."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness.helm import NAMESPACE, Release
from tests.e2e.harness.kubectl import Kubectl


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks of this folder."""
    config.addinivalue_line("markers", "frameworks: needs the image with the real frameworks (make e2e-image)")


@pytest.fixture(scope="session")
def cluster() -> Kubectl:
    """kubectl for the cluster; fails at once, and says why, when there is none."""
    kubeconfig = Path(os.environ.get("KUBECONFIG", ""))
    assert kubeconfig.is_file(), f"no cluster: KUBECONFIG is {str(kubeconfig)!r}; run these tests with: make e2e"
    for tool in ("kubectl", "helm", "docker", "kind"):
        assert shutil.which(tool), f"{tool} is missing; run these tests with: make e2e"
    kubectl = Kubectl(kubeconfig=kubeconfig.absolute(), namespace="default")
    kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    return kubectl


@pytest.fixture(scope="session")
def release(cluster: Kubectl) -> Release:
    """The installed chart, ready."""
    release = Release(kubectl=cluster.inside(NAMESPACE))
    release.wait_until_ready()
    return release


@pytest.fixture
def kubectl(cluster: Kubectl, release: Release) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own, which goes away behind it."""
    namespace = f"e2e-{uuid.uuid4().hex[:8]}"
    cluster("create", "namespace", namespace)
    yield cluster.inside(namespace)
    cluster("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="session")
def e2e_image(cluster: Kubectl) -> str:
    """The image with the frameworks; fails when it is not on the nodes."""
    name = os.environ.get("KIND_CLUSTER", "vcjob")
    found = subprocess.run(
        ("docker", "exec", f"{name}-worker", "crictl", "images"), capture_output=True, text=True, check=True
    ).stdout
    assert "vcjob-e2e" in found, "vcjob-e2e:1 is not on the nodes; run: make e2e-image"
    return "vcjob-e2e:1"

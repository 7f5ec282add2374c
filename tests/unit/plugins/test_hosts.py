"""Names of Pods, and what they may be."""

import pytest

from vcjob.plugins.hosts import ENV_ENTRY_MAX, fits_env, hosts, is_label, volume_name

from .builders import job


@pytest.mark.parametrize(
    ("spec", "replicas", "expected"),
    [
        pytest.param({}, 2, ("train-w-0.train", "train-w-1.train"), id="plain"),
        pytest.param({}, 0, (), id="no replicas"),
        pytest.param({"subdomain": "net"}, 1, ("train-w-0.net",), id="own subdomain"),
        pytest.param({"hostname": "box"}, 3, ("box.train",), id="own hostname is listed once"),
        pytest.param({"hostname": "box", "subdomain": "net"}, 1, ("box.net",), id="both"),
        pytest.param({"hostname": "box"}, 0, (), id="own hostname without replicas"),
        pytest.param({"hostname": "", "subdomain": None}, 1, ("train-w-0.train",), id="empty counts as absent"),
    ],
)
def test_hosts_of_a_task(spec: dict[str, str], replicas: int, expected: tuple[str, ...]) -> None:
    made = job().task("w", replicas, **spec).make()
    assert hosts(made, task=made.spec.tasks[0]) == expected


@pytest.mark.parametrize(
    ("name", "valid"),
    [("a", True), ("a" * 63, True), ("a" * 64, False), ("a.b", False), ("-a", False), ("a-", False), ("", False)],
)
def test_labels(name: str, valid: bool) -> None:
    assert is_label(name) is valid


@pytest.mark.parametrize(
    ("name", "volume"),
    [
        pytest.param("a" * 59, "a" * 59 + "-svc", id="63 characters"),
        pytest.param("a" * 60, "vcjob-svc", id="64 characters"),
        pytest.param("my.job", "vcjob-svc", id="a dot"),
    ],
)
def test_a_volume_has_a_name_that_a_pod_may_have(name: str, volume: str) -> None:
    assert volume_name(job(name).make(), "svc") == volume


def test_the_limit_of_a_variable_counts_name_sign_and_closing_zero() -> None:
    assert fits_env("NAME", "x" * (ENV_ENTRY_MAX - len("NAME=") - 1))
    assert not fits_env("NAME", "x" * (ENV_ENTRY_MAX - len("NAME=")))

"""ssh: one key pair a Job, a config that follows its tasks, files that ssh accepts."""

from base64 import b64decode
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from vcjob.plugins.hosts import OBJECT_DATA_MAX
from vcjob.plugins.preview import data_of

from .builders import JobBuilder, job

HEAD = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"


def config(made: JobBuilder) -> str:
    return data_of(made.objects()["Secret/train-ssh"])["config"]


def generated(made: JobBuilder) -> dict[str, str]:
    generate = made.objects()["Secret/train-ssh"].generate
    assert generate is not None
    return {key: b64decode(value).decode() for key, value in generate()["data"].items()}


def volume(made: JobBuilder) -> dict[str, Any]:
    found: dict[str, Any] = made.pod("w").spec["volumes"][0]["secret"]
    return found


def test_the_config_knows_every_host_and_its_port() -> None:
    made = job().plugin("ssh", "--ssh-port=2222").task("m", 1).task("w", 2)
    hosts = [("train-m-0", "train"), ("train-w-0", "train"), ("train-w-1", "train")]
    blocks = [f"Host {label}\n  HostName {label}.{domain}\n  Port 2222\n" for label, domain in hosts]
    assert config(made) == HEAD + "".join(blocks)


def test_own_hostname_and_subdomain_are_in_the_config_once() -> None:
    made = job().plugin("ssh").task("w", 3, hostname="box", subdomain="net")
    assert config(made) == HEAD + "Host box\n  HostName box.net\n  Port 22\n"


def test_only_the_config_follows_the_tasks() -> None:
    wanted = job().plugin("ssh").task("w", 1).objects()["Secret/train-ssh"]
    assert wanted.follow == (("data", "config"),)
    assert set(wanted.manifest["data"]) == {"config"}


def test_the_keys_are_a_pair_in_the_forms_that_ssh_reads() -> None:
    keys = generated(job().plugin("ssh").task("w", 1))
    assert set(keys) == {"id_rsa", "id_rsa.pub", "authorized_keys"}
    assert keys["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    private = serialization.load_pem_private_key(keys["id_rsa"].encode(), password=None)
    public = serialization.load_ssh_public_key(keys["id_rsa.pub"].encode())
    assert private.public_key() == public
    assert public.key_size == 2048
    assert keys["id_rsa.pub"] == keys["authorized_keys"]
    assert keys["id_rsa.pub"].endswith("\n")
    assert len(keys["id_rsa.pub"].split()) == 2


def test_every_generation_makes_another_pair() -> None:
    made = job().plugin("ssh").task("w", 1)
    assert generated(made) != generated(made)


def test_own_keys_are_taken_as_they_are() -> None:
    made = job().plugin("ssh", "--ssh-private-key=PRIV", "--ssh-public-key", "PUB").task("w", 1)
    wanted = made.objects()["Secret/train-ssh"]
    assert wanted.generate is None
    assert data_of(wanted) == {
        "config": config(made),
        "id_rsa": "PRIV",
        "id_rsa.pub": "PUB",
        "authorized_keys": "PUB",
    }


def test_the_public_line_of_an_own_key_is_derived() -> None:
    pair = generated(job().plugin("ssh").task("w", 1))
    made = job().plugin("ssh", f"--ssh-private-key={pair['id_rsa']}").task("w", 1)
    assert generated(made) == pair
    assert any("ssh-public-key is missing" in text for text in made.messages())


def test_an_own_key_that_cannot_be_read_has_no_public_line() -> None:
    assert generated(job().plugin("ssh", "--ssh-private-key=PRIV").task("w", 1)) == {
        "id_rsa": "PRIV",
        "id_rsa.pub": "",
        "authorized_keys": "",
    }


def test_a_public_key_alone_is_ignored_and_named() -> None:
    made = job().plugin("ssh", "--ssh-public-key=PUB").task("w", 1)
    assert "PUB" not in generated(made)["id_rsa.pub"]
    assert any("ssh-public-key is ignored" in text for text in made.messages())


@pytest.mark.parametrize(
    ("path", "mounted", "mode"),
    [
        pytest.param("/root/.ssh", "/root/.ssh", 0o600, id="root"),
        pytest.param("/root/.ssh/", "/root/.ssh", 0o600, id="root with a slash"),
        pytest.param("/home/user/.ssh", "/home/user/.ssh", 0o644, id="another user"),
        pytest.param("keys", "/root/.ssh", 0o600, id="relative"),
        pytest.param("/a:b", "/root/.ssh", 0o600, id="a colon"),
        pytest.param("/", "/root/.ssh", 0o600, id="the whole file system"),
    ],
)
def test_the_mode_of_the_files_fits_their_reader(path: str, mounted: str, mode: int) -> None:
    made = job().plugin("ssh", f"--ssh-key-file-path={path}").task("w", 1)
    mount = made.pod("w").containers[0]["volumeMounts"][0]
    assert mount == {"name": "train-ssh", "mountPath": mounted, "subPath": ".ssh"}
    assert volume(made)["defaultMode"] == mode
    assert bool(made.messages()) is (mounted != path.rstrip("/"))


def test_every_file_lies_below_the_mounted_directory() -> None:
    items = {item["key"]: item["path"] for item in volume(job().plugin("ssh").task("w", 1))["items"]}
    assert items == {key: f".ssh/{key}" for key in ("id_rsa", "id_rsa.pub", "authorized_keys", "config")}


@pytest.mark.parametrize("port", ["0", "65536", "-1", "ssh"])
def test_a_port_that_is_none_is_named_and_22_stays(port: str) -> None:
    made = job().plugin("ssh", f"--ssh-port={port}").task("w", 1)
    assert "  Port 22\n" in config(made)
    assert len(made.messages()) == 1


def test_a_config_too_long_for_a_secret_has_a_pattern_for_each_task() -> None:
    made = job().plugin("ssh").task("m", 1, hostname="box").task("w", 20_000, subdomain="net")
    assert len(config(made)) < OBJECT_DATA_MAX
    assert config(made) == HEAD + (
        "Host box !*.*\n  HostName %h.train\n  Port 22\nHost train-w-* !*.*\n  HostName %h.net\n  Port 22\n"
    )
    assert any("one pattern for each task" in text for text in made.messages())


def test_two_thousand_hosts_are_listed_one_by_one() -> None:
    assert config(job().plugin("ssh").task("w", 2000)).count("Host ") == 2000


@pytest.mark.parametrize("name", ["my.job", "a" * 63])
def test_a_job_name_that_no_volume_can_have_still_works(name: str) -> None:
    pod = job(name).plugin("ssh").task("w", 1).pod("w")
    assert pod.spec["volumes"][0]["name"] == pod.containers[0]["volumeMounts"][0]["name"] == "vcjob-ssh"
    assert pod.spec["volumes"][0]["secret"]["secretName"] == f"{name}-ssh"

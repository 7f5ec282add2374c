"""A kubeconfig holds all it needs, and is for its owner only."""

import base64
import stat
from pathlib import Path

import yaml

from vcjob.cluster.kubeconfig import Endpoint, write_token_kubeconfig


def test_a_token_kubeconfig_can_be_copied_anywhere(tmp_path: Path):
    (tmp_path / "ca").write_text("the authority")
    endpoint = Endpoint(cluster="c", url="https://127.0.0.1:1", ca=tmp_path / "ca")
    path = tmp_path / "kubeconfig"
    write_token_kubeconfig(path, endpoint=endpoint, user="u", token="t", namespace="n")

    config = yaml.safe_load(path.read_text())
    (context,), (cluster,), (user,) = config["contexts"], config["clusters"], config["users"]
    assert config["current-context"] == context["name"] == "vcjob-c"
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"], "namespace": "n"}
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"the authority"
    assert user["user"] == {"token": "t"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

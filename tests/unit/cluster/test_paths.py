"""Names and places."""

from pathlib import Path

import pytest

from vcjob.cluster.errors import InvalidName
from vcjob.cluster.paths import binary_cache, cluster_paths, clusters_home


@pytest.mark.parametrize("name", ["a", "default", "a-1", "x" * 40])
def test_a_short_label_names_a_cluster(name: str):
    assert cluster_paths(name).folder.name == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a/b", "..", "a.b", "x" * 41])
def test_nothing_else_does(name: str):
    with pytest.raises(InvalidName, match="cannot name a cluster"):
        cluster_paths(name)


@pytest.mark.parametrize(
    ("own", "xdg", "home"),
    [
        pytest.param("/own", "/xdg", "/own", id="our variable wins"),
        pytest.param(None, "/xdg", "/xdg/vcjob/clusters", id="then XDG"),
        pytest.param(None, "not/absolute", "/me/.local/state/vcjob/clusters", id="a relative XDG path is ignored"),
        pytest.param(None, None, "/me/.local/state/vcjob/clusters", id="then the home folder"),
    ],
)
def test_the_state_lies_where_the_user_says(
    own: str | None, xdg: str | None, home: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/me")
    for variable, value in (("VCJOB_CLUSTER_HOME", own), ("XDG_STATE_HOME", xdg)):
        monkeypatch.setenv(variable, value) if value else monkeypatch.delenv(variable, raising=False)
    assert clusters_home() == Path(home)


def test_the_cache_is_for_one_version(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert binary_cache() == Path("/cache/vcjob/controlplane/v1.36.3")

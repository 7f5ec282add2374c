"""The first way that leads to a program wins. The ways themselves are tested where they live."""

import io
from pathlib import Path

import pytest

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.paths import binary_cache
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import ETCD, KUBECTL

SAY = Progress(io.StringIO())


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    binary_cache().mkdir(parents=True)
    (tmp_path / "assets").mkdir()


def put(path: Path, *, mode: int = 0o755) -> Path:
    path.touch(mode=mode)
    return path


def test_the_named_folder_goes_before_the_cache(tmp_path: Path):
    put(binary_cache() / "etcd")
    named = put(tmp_path / "assets" / "etcd")
    assert find_binaries((ETCD,), say=SAY) == {"etcd": named}


def test_what_the_named_folder_lacks_comes_from_the_cache(tmp_path: Path):
    named, cached = put(tmp_path / "assets" / "etcd"), put(binary_cache() / "kubectl")
    assert find_binaries((ETCD, KUBECTL), say=SAY) == {"etcd": named, "kubectl": cached}


def test_a_file_that_cannot_be_run_is_no_program(tmp_path: Path):
    put(tmp_path / "assets" / "etcd", mode=0o644)
    cached = put(binary_cache() / "etcd")
    assert find_binaries((ETCD,), say=SAY) == {"etcd": cached}


@pytest.mark.parametrize(("folder", "sentence"), [("assets", "does not hold etcd"), ("nowhere", "is no folder")])
def test_that_the_named_folder_did_not_help_is_said(
    folder: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / folder))
    put(binary_cache() / "etcd")
    said = io.StringIO()
    find_binaries((ETCD,), say=Progress(said))
    assert said.getvalue() == f"KUBEBUILDER_ASSETS={tmp_path / folder} {sentence}; looking elsewhere\n"

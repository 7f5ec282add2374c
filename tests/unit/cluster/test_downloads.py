"""What is fetched is what its publisher states, or it is not used."""

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from vcjob.cluster.downloads import ChecksumForm, Source, fetch, source_of, stated_checksum
from vcjob.cluster.errors import DownloadFailed
from vcjob.cluster.versions import TOOLS, Tool

SUM = hashlib.sha256(b"program").hexdigest()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL under which it is served."""
    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param(ChecksumForm.BARE, SUM + "\n", id="bare"),
        pytest.param(ChecksumForm.LIST, f"{'0' * 64}  other\n{SUM}  file\n", id="a list"),
        pytest.param(ChecksumForm.LIST, f"{SUM} *file\n", id="a list of binary files"),
        pytest.param(
            ChecksumForm.RELEASE, json.dumps({"assets": [{"name": "file", "digest": f"sha256:{SUM}"}]}), id="a release"
        ),
    ],
)
def test_a_checksum_is_found_in(form: ChecksumForm, text: str):
    assert stated_checksum(text, form=form, file_name="file") == SUM


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param(ChecksumForm.BARE, "<html>not found</html>", id="a page"),
        pytest.param(ChecksumForm.LIST, f"{SUM}  other\n", id="a list without the file"),
        pytest.param(ChecksumForm.RELEASE, "not json", id="no release"),
        pytest.param(ChecksumForm.RELEASE, '{"assets": [{"name": "file", "digest": null}]}', id="no digest"),
    ],
)
def test_no_checksum_is_no_download(form: ChecksumForm, text: str):
    with pytest.raises(DownloadFailed, match="states no SHA-256 for file"):
        stated_checksum(text, form=form, file_name="file")


def test_a_file_with_the_stated_checksum_is_kept(site: tuple[Path, str], tmp_path: Path):
    folder, url = site
    (folder / "file").write_bytes(b"program")
    (folder / "file.sha256").write_text(SUM)
    source = Source(url=f"{url}/file", checksum_url=f"{url}/file.sha256", checksum_form=ChecksumForm.BARE)
    fetch(source, path=tmp_path / "program")
    assert (tmp_path / "program").read_bytes() == b"program"


def test_a_file_with_another_checksum_is_refused(site: tuple[Path, str], tmp_path: Path):
    folder, url = site
    (folder / "file").write_bytes(b"something else")
    (folder / "file.sha256").write_text(SUM)
    source = Source(url=f"{url}/file", checksum_url=f"{url}/file.sha256", checksum_form=ChecksumForm.BARE)
    with pytest.raises(DownloadFailed, match=f"its publisher states {SUM}"):
        fetch(source, path=tmp_path / "program")
    assert not (tmp_path / "program").exists()


def test_the_program_is_taken_out_of_its_archive(site: tuple[Path, str], tmp_path: Path):
    folder, url = site
    with tarfile.open(folder / "a.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("a/etcd")
        member.size = len(b"program")
        tar.addfile(member, io.BytesIO(b"program"))
    archive_sum = hashlib.sha256((folder / "a.tar.gz").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{archive_sum}  a.tar.gz\n")
    source = Source(
        url=f"{url}/a.tar.gz",
        checksum_url=f"{url}/SHA256SUMS",
        checksum_form=ChecksumForm.LIST,
        member="a/etcd",
    )
    fetch(source, path=tmp_path / "etcd")
    assert (tmp_path / "etcd").read_bytes() == b"program"


def test_a_missing_file_is_a_sentence(site: tuple[Path, str], tmp_path: Path):
    _, url = site
    source = Source(url=f"{url}/file", checksum_url=f"{url}/none", checksum_form=ChecksumForm.BARE)
    with pytest.raises(DownloadFailed, match=r"/none: HTTP Error 404"):
        fetch(source, path=tmp_path / "program")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_a_publisher_with_the_version_in_the_address(tool: Tool):
    source = source_of(tool, architecture="arm64")
    assert source.url.startswith("https://") and source.checksum_url.startswith("https://")
    assert tool.version in source.url and "arm64" in source.url

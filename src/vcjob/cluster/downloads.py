"""The publishers' own files, over HTTPS, each compared with the SHA-256 that its publisher states.

Short timeouts, and one look at each host: a machine without internet learns in seconds that this way is closed.
"""

import hashlib
import http.client
import json
import re
import shutil
import socket
import tarfile
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

from vcjob.cluster.errors import DownloadFailed
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import ETCD, KWOK, Tool

__all__ = ("ChecksumForm", "Source", "download", "fetch", "source_of", "stated_checksum")

_CONNECT_TIMEOUT_S: Final = 3.0
_READ_TIMEOUT_S: Final = 30.0
_CHUNK: Final = 1024 * 1024  # bytes


class ChecksumForm(Enum):
    """How a publisher states checksums."""

    BARE = "the file holds the checksum and nothing else"
    LIST = "lines of checksum and file name, as sha256sum writes them"
    RELEASE = "GitHub's description of a release, with a digest for each file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file to fetch, and what it must be."""

    url: str
    checksum_url: str
    checksum_form: ChecksumForm
    member: str | None = None  # the program's path in the archive; None: the file is the program

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


def source_of(tool: Tool, *, architecture: str) -> Source:
    """Return where the publisher of that program keeps it; `architecture` in Go's words (amd64)."""
    if tool is ETCD:
        root = f"https://github.com/etcd-io/etcd/releases/download/{tool.version}"
        stem = f"etcd-{tool.version}-linux-{architecture}"
        return Source(
            url=f"{root}/{stem}.tar.gz",
            checksum_url=f"{root}/SHA256SUMS",
            checksum_form=ChecksumForm.LIST,
            member=f"{stem}/etcd",
        )
    if tool is KWOK:
        return Source(
            url=f"https://github.com/kubernetes-sigs/kwok/releases/download/{tool.version}/kwok-linux-{architecture}",
            checksum_url=f"https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/{tool.version}",
            checksum_form=ChecksumForm.RELEASE,
        )
    url = f"https://dl.k8s.io/release/{tool.version}/bin/linux/{architecture}/{tool.name}"
    return Source(url=url, checksum_url=f"{url}.sha256", checksum_form=ChecksumForm.BARE)


def download(tool: Tool, *, path: Path, architecture: str, say: Progress) -> None:
    """Fetch one program; raises DownloadFailed."""
    source = source_of(tool, architecture=architecture)
    for url in (source.checksum_url, source.url):
        _look_at(urllib.parse.urlsplit(url).hostname or "")
    with say.step(f"downloading {tool.name} {tool.version}"):
        fetch(source, path=path)


def fetch(source: Source, *, path: Path) -> None:
    """Fetch a source's program into `path`, verified; raises DownloadFailed."""
    wanted = stated_checksum(_read(source.checksum_url), form=source.checksum_form, file_name=source.file_name)
    with tempfile.TemporaryDirectory() as folder:
        fetched = Path(folder) / source.file_name
        found = _save(source.url, path=fetched)
        if found != wanted:
            raise DownloadFailed(f"{source.url} has the SHA-256 {found}, its publisher states {wanted}")
        if source.member is None:
            shutil.move(fetched, path)
        else:
            _extract(fetched, member=source.member, path=path)


def stated_checksum(text: str, *, form: ChecksumForm, file_name: str) -> str:
    """Return the SHA-256 that a publisher states for a file, in hex; raises DownloadFailed."""
    found: str | None = None
    if form is ChecksumForm.BARE:
        found = text.strip()
    elif form is ChecksumForm.LIST:
        pairs = (line.split() for line in text.splitlines())
        found = next((pair[0] for pair in pairs if len(pair) == 2 and pair[1].lstrip("*") == file_name), None)
    else:
        try:
            assets = json.loads(text)["assets"]
            digest = next((asset.get("digest") for asset in assets if asset["name"] == file_name), None)
        except (ValueError, KeyError, TypeError):
            digest = None
        found = (digest or "").removeprefix("sha256:")
    if not found or not re.fullmatch(r"[0-9a-f]{64}", found):
        raise DownloadFailed(f"its publisher states no SHA-256 for {file_name}")
    return found


@cache
def _unreachable(host: str) -> str | None:
    """Return why a host cannot be reached, None when it can; the answer is kept for the life of this process."""
    problem: list[str] = [f"{host} gave no answer within {_CONNECT_TIMEOUT_S:.0f} s"]

    def connect() -> None:
        try:
            socket.create_connection((host, 443), timeout=_CONNECT_TIMEOUT_S).close()
            problem.clear()
        except OSError as error:
            problem[:] = [f"{host} cannot be reached: {error}"]

    # In a thread, because looking a name up obeys no timeout.
    thread = threading.Thread(target=connect, name=f"look at {host}", daemon=True)
    thread.start()
    thread.join(_CONNECT_TIMEOUT_S)
    return problem[0] if problem else None


def _look_at(host: str) -> None:
    if urllib.request.getproxies().get("https"):
        return  # then the proxy is what must be reachable, and urllib finds out
    if problem := _unreachable(host):
        raise DownloadFailed(problem)


def _read(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=_READ_TIMEOUT_S) as answer:
            text: str = answer.read().decode()
            return text
    except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
        raise DownloadFailed(f"{url}: {error}") from error


def _save(url: str, *, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=_READ_TIMEOUT_S) as answer, path.open("wb") as file:
            while chunk := answer.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadFailed(f"{url}: {error}") from error
    return digest.hexdigest()


def _extract(archive: Path, *, member: str, path: Path) -> None:
    try:
        with tarfile.open(archive) as tar, path.open("wb") as file:
            content = tar.extractfile(member)
            if content is None:
                raise DownloadFailed(f"{archive.name} holds no file {member}")
            shutil.copyfileobj(content, file)
    except (tarfile.TarError, KeyError) as error:
        raise DownloadFailed(f"{archive.name} holds no {member}: {error}") from error

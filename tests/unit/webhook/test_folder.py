"""Certificates of a folder, as a mounted Secret changes it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from vcjob.webhook.certificates import LIFETIMES, Material, advance
from vcjob.webhook.folder import follow_folder
from vcjob.webhook.tls import ServingCertificate


def made() -> Material:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    return advance(None, names=("localhost",), now=now, lifetimes=LIFETIMES, published=False)


def mount(folder: Path, certificate: bytes, key: bytes) -> None:
    """Put files there as the kubelet does: a new folder behind a link."""
    version = folder / f"..{len(list(folder.iterdir()))}"
    version.mkdir()
    (version / "tls.crt").write_bytes(certificate)
    (version / "tls.key").write_bytes(key)
    link = folder / "..new"
    link.symlink_to(version.name)
    link.rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - files and the follower have no event in common
            await asyncio.sleep(0.001)


@asynccontextmanager
async def following(folder: Path) -> AsyncIterator[tuple[ServingCertificate, list[str]]]:
    serving, tell = ServingCertificate(), [""]
    task = asyncio.create_task(follow_folder(folder, serving=serving, tell=tell, every_s=0.01))
    yield serving, tell
    task.cancel()
    await asyncio.wait((task,))


async def test_a_renewed_certificate_is_served(tmp_path: Path):
    first, second = made(), made()
    mount(tmp_path, first.certificate, first.key)
    async with following(tmp_path) as (serving, tell):
        await until(lambda: serving.certificate == first.certificate)
        mount(tmp_path, second.certificate, second.key)
        await until(lambda: serving.certificate == second.certificate)
        assert tell == []


async def test_a_folder_without_files_is_waited_for(tmp_path: Path):
    async with following(tmp_path) as (serving, tell):
        await until(lambda: tell and "tls.crt" in tell[0])
        good = made()
        mount(tmp_path, good.certificate, good.key)
        await until(lambda: serving.certificate == good.certificate)


async def test_a_bad_pair_leaves_the_former_one_and_says_so(tmp_path: Path):
    good = made()
    mount(tmp_path, good.certificate, good.key)
    async with following(tmp_path) as (serving, tell):
        await until(lambda: serving.certificate)
        mount(tmp_path, made().certificate, good.key)
        await until(lambda: tell and "cannot be used" in tell[0])
        assert serving.certificate == good.certificate

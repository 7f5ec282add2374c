"""From chunks that end anywhere to whole lines and frames."""

from collections.abc import AsyncIterator

import pytest

from vcjob.kube.pieces import Split, split_frames, split_lines

PIECES = [b"a", b"bc" * 40_000, b"", b"\x00\x00\x00\x02", b"ende"]


async def chunked(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def pieces_of(data: bytes, *, split: Split, size: int) -> list[bytes]:
    return [piece async for pieces in split(chunked(data, size)) for piece in pieces]


def framed(pieces: list[bytes]) -> bytes:
    return b"".join(len(piece).to_bytes(4) + piece for piece in pieces)


@pytest.mark.parametrize("size", [1, 3, 5, 4096, 10**6])
async def test_whatever_the_chunks_the_pieces_are_the_same(size: int):
    assert await pieces_of(framed(PIECES), split=split_frames, size=size) == PIECES
    lines = b"".join(piece + b"\n" for piece in PIECES)
    assert await pieces_of(lines, split=split_lines, size=size) == PIECES


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 7])
async def test_what_is_cut_at_the_end_is_dropped(cut: int):
    assert await pieces_of(framed([b"whole", b"half"])[:-cut], split=split_frames, size=2) == [b"whole"]
    assert await pieces_of(b"whole\nhalf", split=split_lines, size=2) == [b"whole"]

"""From a stream's chunks, which end anywhere, to its pieces. What is left at the end without an end is dropped."""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Final

__all__ = ("Split", "split_frames", "split_lines")

Split = Callable[[AsyncIterable[bytes]], AsyncGenerator[list[bytes], None]]
"""Yields, after each chunk that ends at least one piece, the pieces that are complete."""

_LENGTH: Final = 4  # bytes before each frame


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Split at newlines, as JSON is streamed."""
    # The pieces of a long line are kept in a list and joined once: adding to bytes would copy them again and again.
    pieces: list[bytes] = []
    async for chunk in chunks:
        if b"\n" not in chunk:
            pieces.append(chunk)
            continue
        lines = chunk.split(b"\n")
        if pieces:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces.clear()
        rest = lines.pop()
        if rest:
            pieces.append(rest)
        yield lines


async def split_frames(chunks: AsyncIterable[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Split by the length, a big-endian number of four bytes, that stands before each frame of streamed protobuf."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        frames = []
        start = 0
        while len(buffer) - start >= _LENGTH:
            begin = start + _LENGTH
            end = begin + int.from_bytes(buffer[start:begin])
            if end > len(buffer):
                break
            frames.append(bytes(buffer[begin:end]))
            start = end
        if frames:
            del buffer[:start]
            yield frames

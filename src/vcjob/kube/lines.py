"""From a stream's chunks to its lines."""

from collections.abc import AsyncGenerator, AsyncIterable

__all__ = ("split_lines",)


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield the whole lines of each chunk that ends at least one; what is left without an end is not a line."""
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

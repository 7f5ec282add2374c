"""Where servers listen. Pure values."""

from dataclasses import dataclass

__all__ = ("BindAddress", "parse_bind_address")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAddress:
    """Where a server listens; an empty host means all interfaces, port 0 none at all."""

    host: str
    port: int


def parse_bind_address(text: str) -> BindAddress:
    """Read `HOST:PORT`, `:PORT` or `0` (off). Raises ValueError with a sentence."""
    if text in ("0", ""):
        return BindAddress(host="", port=0)
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no bind address; write HOST:PORT, :PORT, or 0 to switch it off")
    return BindAddress(host=host.strip("[]"), port=int(port))

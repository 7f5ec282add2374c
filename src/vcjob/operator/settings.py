"""What an operator process was told on its command line or in its environment. Pure values."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ("BindAddress", "OperatorSettings", "parse_bind_address")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """Settings of `vcjob operator`."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()  # empty: all
    gang_scheduler: str = "none"  # or "volcano"
    scheduler_name: str = "volcano"
    leader_elect: bool = True
    leader_elect_namespace: str | None = None
    health: BindAddress = BindAddress(host="", port=8081)
    metrics: BindAddress = BindAddress(host="", port=8080)
    log_level: str = "info"
    log_format: str = "text"

"""What an operator process was told on its command line or in its environment. Pure values."""

from dataclasses import dataclass
from pathlib import Path

from vcjob.daemon.addresses import BindAddress

__all__ = ("OperatorSettings",)


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
    health: BindAddress
    metrics: BindAddress
    log_level: str = "info"
    log_format: str = "text"

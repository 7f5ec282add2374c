"""What a webhook process was told on its command line or in its environment. Pure values."""

from dataclasses import dataclass, field
from pathlib import Path

from vcjob.admission.queue_rules import QueuePolicy
from vcjob.daemon.addresses import BindAddress

from .certificates import LIFETIMES, Lifetimes

__all__ = ("CertificateFolder", "CertificateSource", "LocalCertificate", "ManagedCertificate", "WebhookSettings")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFolder:
    """Somebody else makes and renews the certificate."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedCertificate:
    """The webhook makes and renews its certificate."""

    service: str
    namespace: str  # of the Service and of the Secret
    secret: str
    configuration: str
    extra_names: tuple[str, ...] = ()  # host names and addresses beside the Service's
    lifetimes: Lifetimes = LIFETIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCertificate:
    """A certificate for 127.0.0.1 that lives as long as the process, and so do the webhook configurations."""

    configuration: str


CertificateSource = CertificateFolder | ManagedCertificate | LocalCertificate


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Settings of `vcjob webhook`."""

    certificates: CertificateSource
    webhook: BindAddress
    health: BindAddress
    metrics: BindAddress
    kubeconfig: Path | None = None
    context: str | None = None
    kinds: tuple[str, ...] = ("jobs",)  # plurals that are answered for
    check_queues: bool = False  # of Jobs and PodGroups
    queue_policy: QueuePolicy = field(default_factory=QueuePolicy)
    scheduler_name: str = "volcano"
    shutdown_delay_s: float = 5.0
    log_level: str = "info"
    log_format: str = "text"

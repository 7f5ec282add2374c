"""The TLS side of the server: a context whose certificate can be changed while it serves.

New connections get the new certificate, open ones go on; nothing stops listening. A pair that does not fit together is
refused and the former one stays. Keys never show in a text or a log.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from .certificates import ends_at

__all__ = ("ServingCertificate", "UnusableCertificate")


class UnusableCertificate(Exception):
    """Certificate and key cannot be served; the text says why."""


class ServingCertificate:
    """What the server shows to its clients; nothing at first."""

    def __init__(self) -> None:
        self.context = _make_context()
        self.certificate = b""
        self.ends_at: datetime | None = None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Serve this PEM chain and key from now on. Raises UnusableCertificate."""
        try:
            ends = ends_at(certificate)
            with _as_file(certificate.rstrip() + b"\n" + key) as path:
                # First where a failure does no harm: a context that failed half-way would serve a mixed pair.
                _make_context().load_cert_chain(path, password=_no_password)
                self.context.load_cert_chain(path, password=_no_password)
        except (ValueError, ssl.SSLError, OSError) as error:
            raise UnusableCertificate(f"certificate and key cannot be used: {type(error).__name__}: {error}") from None
        self.certificate, self.ends_at = certificate, ends

    def find_fault(self, *, now: datetime) -> str:
        """Return why clients will not trust the server; empty when they may."""
        if self.ends_at is None:
            return "there is no certificate yet"
        return f"the certificate ran out at {self.ends_at:%Y-%m-%dT%H:%M:%SZ}" if self.ends_at <= now else ""


def _make_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> bytes:
    raise ValueError("the key is encrypted")  # otherwise OpenSSL asks on the terminal


@contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """Yield a path for the ssl module, which reads keys from files only; in memory where the system has it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        try:
            os.write(descriptor, pem)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(buffering=0, suffix=".pem") as file:  # readable by its owner only
            file.write(pem)
            yield file.name

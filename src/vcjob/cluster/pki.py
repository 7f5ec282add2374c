"""The keys and certificates of a cluster: its own authority, one serving certificate, a client certificate per user.

Writes PEM files into the cluster's folder; nothing is shared between clusters. Keys are P-256, as making an RSA key for
each would cost `up` a second.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = (
    "ADMIN",
    "CONTROLLER_MANAGER",
    "FAKE_KUBELET",
    "FRONT_PROXY",
    "SCHEDULER",
    "USERS",
    "CertificateFiles",
    "User",
    "write_pki",
)

_VALID: Final = timedelta(days=3650)
_CLOCK_SKEW: Final = timedelta(hours=1)
_ADMINISTRATORS: Final = "system:masters"
_SERVING_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVING_ADDRESSES: Final = ("127.0.0.1", "10.96.0.1")  # the second: the first address of the Service range


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user that logs in by client certificate. `key` names its files."""

    key: str
    name: str  # as RBAC and the audit log see it
    group: str | None = None


ADMIN: Final = User(key="admin", name="kubernetes-admin", group=_ADMINISTRATORS)
CONTROLLER_MANAGER: Final = User(key="controller-manager", name="system:kube-controller-manager")
SCHEDULER: Final = User(key="scheduler", name="system:kube-scheduler")
# A name of its own, so that an audit log tells the fake nodes' writes from the administrator's.
FAKE_KUBELET: Final = User(key="kwok", name="kwok", group=_ADMINISTRATORS)
FRONT_PROXY: Final = User(key="front-proxy", name="front-proxy-client")
USERS: Final = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, FAKE_KUBELET)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """Where `write_pki` put things."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def serving(self) -> Path:
        return self.folder / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.folder / "serving.key"

    @property
    def front_proxy_ca(self) -> Path:
        return self.folder / "front-proxy-ca.crt"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-account.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.folder / "service-account.pub"

    def client(self, user: User) -> Path:
        return self.folder / f"{user.key}.crt"

    def client_key(self, user: User) -> Path:
        return self.folder / f"{user.key}.key"


def write_pki(folder: Path) -> CertificateFiles:
    """Make all keys and certificates of a new cluster; `folder` must not exist."""
    folder.mkdir(mode=0o700)
    files = CertificateFiles(folder=folder)
    authority = _Authority("vcjob-cluster-ca")
    files.ca.write_bytes(authority.certificate)
    _write_key(files.ca_key, key=authority.key)

    serving_key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName(name) for name in _SERVING_NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVING_ADDRESSES]
    files.serving.write_bytes(
        authority.sign(
            serving_key,
            subject=_subject("kube-apiserver"),
            usage=ExtendedKeyUsageOID.SERVER_AUTH,
            alternative_names=x509.SubjectAlternativeName([*names, *addresses]),
        )
    )
    _write_key(files.serving_key, key=serving_key)

    for user in USERS:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(user.name, group=user.group)
        files.client(user).write_bytes(authority.sign(key, subject=subject, usage=ExtendedKeyUsageOID.CLIENT_AUTH))
        _write_key(files.client_key(user), key=key)

    # The API server vouches to extension servers for its callers, under an authority of its own: one that also signs
    # users would let every user speak for any other.
    front_proxy_authority = _Authority("vcjob-cluster-front-proxy-ca")
    files.front_proxy_ca.write_bytes(front_proxy_authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(FRONT_PROXY.name)
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    files.client(FRONT_PROXY).write_bytes(front_proxy_authority.sign(key, subject=subject, usage=usage))
    _write_key(files.client_key(FRONT_PROXY), key=key)

    account_key = ec.generate_private_key(ec.SECP256R1())
    _write_key(files.service_account_key, key=account_key)
    files.service_account_public_key.write_bytes(
        account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return files


class _Authority:
    """A certificate authority that lives as long as `write_pki` runs."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            _certificate(self._name, issuer=self._name, key=self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        )
        self.certificate = _pem(builder.sign(self.key, hashes.SHA256()))

    def sign(
        self,
        key: ec.EllipticCurvePrivateKey,
        *,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternative_names: x509.SubjectAlternativeName | None = None,
    ) -> bytes:
        """Return a PEM certificate for one use."""
        builder = (
            _certificate(subject, issuer=self._name, key=key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            # Python's own TLS refuses a chain without this one since 3.13.
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if alternative_names:
            builder = builder.add_extension(alternative_names, critical=False)
        return _pem(builder.sign(self.key, hashes.SHA256()))


def _certificate(subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
    )


def _subject(name: str, *, group: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, *, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    # SEC1 ("EC PRIVATE KEY") is the one form that every component reads, for serving, signing and logging in.
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )

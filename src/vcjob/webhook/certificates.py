"""Keys and certificates of the webhook, and the steps of their rotation.

No I/O and no clock; keys come from the system's random source.

An authority (CA) signs the serving certificate (leaf). One step is taken at a time, and each leaves every replica and
every API server able to talk to each other, whichever step they know of:

1. a new authority joins the bundle that API servers are told to trust, in front; the leaf is still the old one's;
2. once the bundle has been published and has had time to arrive (`settle`), the new authority signs a new leaf;
3. the old authority leaves the bundle when it has run out, long after its last leaf.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = (
    "LIFETIMES",
    "Lifetimes",
    "Material",
    "advance",
    "ends_at",
    "make_lifetimes",
    "may_be_served",
    "service_names",
)

_SETTLE: Final = timedelta(seconds=90)
_CLOCK_SKEW: Final = timedelta(hours=1)  # certificates are good from this long before they were made
_RENEW_AT: Final = 2 / 3  # of a life
_CA_NAME: Final = "vcjob-webhook-ca"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long things are good for."""

    authority: timedelta
    leaf: timedelta
    settle: timedelta  # from a new authority's making until its leaves may be served


def make_lifetimes(*, authority: timedelta, leaf: timedelta) -> Lifetimes:
    """Return lifetimes with the time to settle that fits them: a minute and a half, less where lives are short."""
    return Lifetimes(authority=authority, leaf=leaf, settle=min(_SETTLE, leaf / 10))


LIFETIMES: Final = make_lifetimes(authority=timedelta(days=5 * 365), leaf=timedelta(days=365))


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a Secret holds; all PEM."""

    bundle: tuple[bytes, ...]  # authorities, the newest first
    authority_key: bytes = field(repr=False)  # of the newest
    certificate: bytes  # the leaf
    key: bytes = field(repr=False)


def advance(
    material: Material | None,
    *,
    names: tuple[str, ...],
    now: datetime,
    lifetimes: Lifetimes,
    published: bool,
    trusted: tuple[bytes, ...] = (),
) -> Material:
    """Take the next step of the rotation; return `material` itself when none is due.

    `names` are the host names and addresses of the leaf, `published` says that API servers have been told of the
    bundle, `trusted` are authorities that some replica may still serve under although there is no material of theirs.
    """
    if material is None or not _is_whole(material):
        return _anew(names=names, now=now, lifetimes=lifetimes, trusted=trusted)
    authority = _load(material.bundle[0])
    if authority.not_valid_after_utc <= now:
        return _anew(names=names, now=now, lifetimes=lifetimes, trusted=())
    if _is_due(authority, now=now):
        key = ec.generate_private_key(ec.SECP256R1())
        newest = _sign_authority(key, now=now, lifetimes=lifetimes)
        return replace(material, bundle=(newest, *_valid(material.bundle, now=now)), authority_key=_key_pem(key))
    leaf = _load(material.certificate)
    stale = _is_due(leaf, now=now) or not _is_signed_by(leaf, authority) or _names_of(leaf) != set(names)
    gone = leaf.not_valid_after_utc <= now
    if stale and (gone or (published and _is_settled(authority, now=now, lifetimes=lifetimes))):
        return _with_new_leaf(material, names=names, now=now, lifetimes=lifetimes)
    bundle = (material.bundle[0], *_valid(material.bundle[1:], now=now))
    return material if bundle == material.bundle else replace(material, bundle=bundle)


def may_be_served(material: Material, *, now: datetime, lifetimes: Lifetimes) -> bool:
    """Whether API servers have heard of the authority behind the leaf; if not, the leaf served until now is better."""
    newest = _load(material.bundle[0])
    return not _is_signed_by(_load(material.certificate), newest) or _is_settled(newest, now=now, lifetimes=lifetimes)


def ends_at(certificate: bytes) -> datetime:
    """Return when a certificate runs out; of a chain, its first. Raises ValueError when it is not PEM."""
    return _load(certificate).not_valid_after_utc


def service_names(service: str, *, namespace: str) -> tuple[str, ...]:
    """Return the host names under which API servers and others reach a Service."""
    name = f"{service}.{namespace}.svc"
    return (name, f"{service}.{namespace}", f"{name}.cluster.local")


def _anew(*, names: tuple[str, ...], now: datetime, lifetimes: Lifetimes, trusted: Iterable[bytes]) -> Material:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign_authority(key, now=now, lifetimes=lifetimes)
    bare = Material(
        bundle=(authority, *_valid(trusted, now=now)), authority_key=_key_pem(key), certificate=b"", key=b""
    )
    return _with_new_leaf(bare, names=names, now=now, lifetimes=lifetimes)


def _with_new_leaf(material: Material, *, names: tuple[str, ...], now: datetime, lifetimes: Lifetimes) -> Material:
    authority = _load(material.bundle[0])
    signer = serialization.load_pem_private_key(material.authority_key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + lifetimes.leaf, authority.not_valid_after_utc)
    leaf = (
        _builder(_name(names[0]), issuer=authority.subject, key=key, now=now, ends=ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return replace(material, certificate=_pem(leaf), key=_key_pem(key))


def _sign_authority(key: ec.EllipticCurvePrivateKey, *, now: datetime, lifetimes: Lifetimes) -> bytes:
    name = _name(f"{_CA_NAME}-{now:%Y%m%d%H%M%S}")
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
    return _pem(
        _builder(name, issuer=name, key=key, now=now, ends=now + lifetimes.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(ends)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_of(leaf: x509.Certificate) -> set[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _is_whole(material: Material) -> bool:
    """Whether everything can be read and the keys fit."""
    try:
        pairs = ((material.bundle[0], material.authority_key), (material.certificate, material.key))
        for certificate, key in pairs:
            private = serialization.load_pem_private_key(key, password=None)
            if not isinstance(private, ec.EllipticCurvePrivateKey):
                return False
            if private.public_key() != _load(certificate).public_key():
                return False
        leaf = _load(material.certificate)
        return any(_is_signed_by(leaf, _load(authority)) for authority in material.bundle)
    except (ValueError, TypeError, IndexError):
        return False


def _is_signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except Exception:  # cryptography raises one of several for one and the same thing
        return False
    return True


def _is_due(certificate: x509.Certificate, *, now: datetime) -> bool:
    made = _made_at(certificate)
    return now >= made + (certificate.not_valid_after_utc - made) * _RENEW_AT


def _is_settled(authority: x509.Certificate, *, now: datetime, lifetimes: Lifetimes) -> bool:
    return now >= _made_at(authority) + lifetimes.settle


def _made_at(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + _CLOCK_SKEW


def _valid(authorities: Iterable[bytes], *, now: datetime) -> tuple[bytes, ...]:
    return tuple(authority for authority in authorities if _ends(authority) > now)


def _ends(authority: bytes) -> datetime:
    try:
        return _load(authority).not_valid_after_utc
    except ValueError:  # not a certificate: it ends before everything
        return datetime.min.replace(tzinfo=UTC)


def _load(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

"""Certificates that other programs accept, and keys that only their owner reads."""

import ipaddress
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from vcjob.cluster.pki import ADMIN, CONTROLLER_MANAGER, FRONT_PROXY, USERS, CertificateFiles, User, write_pki


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return write_pki(tmp_path_factory.mktemp("pki") / "pki")


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def words(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str | bytes]:
    return [attribute.value for attribute in certificate.subject.get_attributes_for_oid(oid)]


def test_the_serving_certificate_is_good_for_the_loopback_address(files: CertificateFiles):
    verifier = PolicyBuilder().store(Store([read(files.ca)]))
    for name in (x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")):
        assert verifier.build_server_verifier(name).verify(read(files.serving), [])


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.key)
def test_every_user_has_a_certificate_with_its_name_and_group(user: User, files: CertificateFiles):
    certificate = read(files.client(user))
    assert words(certificate, NameOID.COMMON_NAME) == [user.name]
    assert words(certificate, NameOID.ORGANIZATION_NAME) == ([user.group] if user.group else [])
    certificate.verify_directly_issued_by(read(files.ca))


def test_only_the_administrators_are_in_the_group_that_may_do_everything(files: CertificateFiles):
    assert words(read(files.client(ADMIN)), NameOID.ORGANIZATION_NAME) == ["system:masters"]
    assert words(read(files.client(CONTROLLER_MANAGER)), NameOID.ORGANIZATION_NAME) == []


def test_the_authority_of_the_front_proxy_signs_no_users(files: CertificateFiles):
    read(files.client(FRONT_PROXY)).verify_directly_issued_by(read(files.front_proxy_ca))
    with pytest.raises(ValueError, match="Issuer"):
        read(files.client(ADMIN)).verify_directly_issued_by(read(files.front_proxy_ca))


def test_keys_are_for_their_owner_only(files: CertificateFiles):
    keys = list(files.folder.glob("*.key"))
    assert len(keys) == len(USERS) + 4  # the authority's, the servers', the front proxy's, the service accounts'
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}

"""Changing the certificate of a server that serves."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from vcjob.webhook.certificates import LIFETIMES, Material, advance, ends_at
from vcjob.webhook.tls import ServingCertificate, UnusableCertificate

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def made() -> Material:
    return advance(None, names=("localhost",), now=NOW, lifetimes=LIFETIMES, published=False)


def shown(serving: ServingCertificate) -> bytes:
    """Return the certificate that a new client sees."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(to_client, to_server), serving.context.wrap_bio(to_server, to_client, server_side=True))
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    der = ends[0].getpeercert(binary_form=True)
    assert der is not None
    return ssl.DER_cert_to_PEM_cert(der).encode()


def test_new_connections_get_the_new_certificate():
    serving, first, second = ServingCertificate(), made(), made()
    serving.load(first.certificate, first.key)
    assert shown(serving) == first.certificate
    serving.load(second.certificate, second.key)
    assert shown(serving) == second.certificate


@pytest.mark.parametrize("key", [made().key, b"", b"rubbish"], ids=["of another", "none", "rubbish"])
def test_a_pair_that_does_not_fit_leaves_the_former_one(key: bytes):
    serving, good = ServingCertificate(), made()
    serving.load(good.certificate, good.key)
    with pytest.raises(UnusableCertificate):
        serving.load(made().certificate, key)
    assert shown(serving) == good.certificate
    assert serving.certificate == good.certificate


def test_what_is_no_certificate_is_refused_without_showing_the_key():
    good = made()
    with pytest.raises(UnusableCertificate) as refused:
        ServingCertificate().load(b"rubbish", good.key)
    assert good.key.decode() not in str(refused.value)


def test_a_server_without_a_good_certificate_says_so():
    serving, good = ServingCertificate(), made()
    assert serving.find_fault(now=NOW) == "there is no certificate yet"
    serving.load(good.certificate, good.key)
    assert serving.find_fault(now=NOW) == ""
    assert "ran out" in serving.find_fault(now=ends_at(good.certificate) + timedelta(seconds=1))

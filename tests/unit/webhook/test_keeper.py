"""Several replicas keep one certificate: whole rotations, in a time that the test moves."""

import asyncio
import random
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.webhook.memory_api import SECRET, MemoryApi

from vcjob.kube.errors import ServerError
from vcjob.webhook.certificates import make_lifetimes, service_names
from vcjob.webhook.keeper import CertificateKeeper, ForeignSecret, KeeperSettings
from vcjob.webhook.tls import ServingCertificate

BEGIN = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIFETIMES = make_lifetimes(authority=timedelta(seconds=3000), leaf=timedelta(seconds=900))
SETTINGS = KeeperSettings(
    names=service_names("hook", namespace="system"),
    namespace="system",
    secret="cert",
    configuration="vcjob",
    lifetimes=LIFETIMES,
)
LAG = LIFETIMES.settle / 2  # an API server has heard of a change after this long at the latest


class Cluster:
    """Replicas around one API server, and what that has been told when."""

    def __init__(self, *, replicas: int) -> None:
        self.now = BEGIN
        self.api = MemoryApi()
        self.told: list[tuple[datetime, bytes]] = []
        self.replicas = [self.replica() for _ in range(replicas)]

    def replica(self) -> tuple[CertificateKeeper, ServingCertificate]:
        serving = ServingCertificate()
        keeper = CertificateKeeper(cast(Any, self.api), SETTINGS, serving=serving, now=lambda: self.now)
        return keeper, serving

    def restart(self, index: int) -> None:
        self.replicas[index] = self.replica()

    async def keep(self, index: int) -> None:
        try:
            await self.replicas[index][0].keep()
        except ServerError:
            pass
        self.told += [(self.now, bundle) for bundle in self.api.bundles]

    def faults(self) -> list[str]:
        """Return which replicas an API server would not trust, whichever bundle it has heard of last."""
        heard = [bundle for at, bundle in self.told if at >= self.now - LAG]
        heard += [bundle for at, bundle in self.told if at < self.now - LAG][-1:]
        found = []
        for index, (_, serving) in enumerate(self.replicas):
            if fault := serving.find_fault(now=self.now):
                found.append(f"replica {index}: {fault}")
            found += [
                f"replica {index} is not trusted"
                for bundle in heard
                if not trusts(bundle, serving.certificate, self.now)
            ]
        return found


def trusts(bundle: bytes, certificate: bytes, now: datetime) -> bool:
    return trusted_until(bundle, certificate) > now


@cache
def trusted_until(bundle: bytes, certificate: bytes) -> datetime:
    leaf = x509.load_pem_x509_certificate(certificate)
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except Exception:
            continue
        return authority.not_valid_after_utc
    return datetime.min.replace(tzinfo=UTC)


def authorities(bundle: bytes) -> int:
    return len(re.findall(rb"BEGIN CERTIFICATE", bundle))


async def test_one_replica_makes_and_the_others_take_over():
    cluster = Cluster(replicas=3)
    for index in range(3):
        await cluster.keep(index)
    assert cluster.api.writes.count(SECRET) == 1
    assert len({serving.certificate for _, serving in cluster.replicas}) == 1
    assert cluster.faults() == []


async def test_replicas_that_start_at_once_agree():
    cluster = Cluster(replicas=3)
    await asyncio.gather(*(cluster.keep(index) for index in range(3)))
    assert len({serving.certificate for _, serving in cluster.replicas}) == 1


async def test_a_round_without_a_due_step_writes_nothing():
    cluster = Cluster(replicas=2)
    await cluster.keep(0)
    written = list(cluster.api.writes)
    for index in (0, 1, 0):
        await cluster.keep(index)
    assert cluster.api.writes == written


async def test_an_emptied_ca_bundle_is_filled_again():
    cluster = Cluster(replicas=1)
    await cluster.keep(0)
    (bundle,) = cluster.api.bundles
    path = next(path for path in cluster.api.objects if path != SECRET)
    del cluster.api.objects[path]["webhooks"][1]["clientConfig"]["caBundle"]
    await cluster.keep(0)
    assert cluster.api.bundles == {bundle}


async def test_an_empty_secret_is_filled_under_its_version():
    cluster = Cluster(replicas=1)
    cluster.api.put_object(SECRET, {"metadata": {"name": "cert"}, "type": "Opaque"})
    await cluster.keep(0)
    assert set(cluster.api.objects[SECRET]["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


async def test_a_secret_of_somebody_else_is_left_alone():
    cluster = Cluster(replicas=1)
    cluster.api.put_object(SECRET, {"metadata": {"name": "cert"}, "data": {"tls.crt": "eA==", "tls.key": "eA=="}})
    with pytest.raises(ForeignSecret, match=re.escape("holds tls.crt, tls.key of somebody else")):
        await cluster.replicas[0][0].keep()
    assert cluster.api.writes == []


async def test_no_leaf_of_a_new_authority_is_made_while_api_servers_cannot_be_told():
    cluster = Cluster(replicas=1)
    await cluster.keep(0)
    for _ in range(70):  # until the authority is due, and beyond
        cluster.now += LIFETIMES.settle / 3
        cluster.api.mute = "webhookconfigurations" if cluster.now > BEGIN + LIFETIMES.authority * 0.6 else ""
        await cluster.keep(0)
        assert cluster.faults() == []
    assert authorities(next(iter(cluster.api.bundles))) == 1


async def test_keys_never_show_in_a_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    cluster = Cluster(replicas=1)
    await cluster.keep(0)
    assert caplog.records
    assert not any("PRIVATE" in str(vars(record)) for record in caplog.records)


@settings(max_examples=4, deadline=None)
@given(st.integers(), st.integers(min_value=0, max_value=99))
def test_every_replica_is_trusted_at_every_moment(seed: int, secret_lost_at: int):
    """Law: through rotations, restarts, outages of the API server and a lost Secret, no replica serves a leaf that has
    run out or that an API server does not trust, though it hears of new authorities late."""

    async def live() -> None:
        chance = random.Random(seed)
        cluster = Cluster(replicas=3)
        for index in range(3):
            await cluster.keep(index)
        cluster.now += LAG
        most = 1
        for step in range(130):  # some 3900 s: more than one life of an authority
            cluster.now += timedelta(seconds=chance.uniform(20, 40)) * (LIFETIMES.settle / timedelta(seconds=90))
            cluster.api.mute = chance.choice(["", "", "", "", "", "secrets", "webhookconfigurations"])
            if step == secret_lost_at:
                cluster.api.objects.pop(SECRET)
            for index in chance.sample(range(3), 3):
                if chance.random() < 0.02 and not lost_lately(step, secret_lost_at) and not cluster.api.mute:
                    cluster.restart(index)
                await cluster.keep(index)
            assert cluster.faults() == []
            most = max(most, *(authorities(bundle) for bundle in cluster.api.bundles))
        assert most >= 2  # there was something to prove

    asyncio.run(live())


def lost_lately(step: int, lost_at: int) -> bool:
    # A replica that starts just after a Secret was lost has nothing to serve but the leaf of an authority of which API
    # servers may hear a moment later. To wait would make the gap longer.
    return 0 <= step - lost_at < 10

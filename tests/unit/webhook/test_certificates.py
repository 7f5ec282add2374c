"""The steps of a rotation, one at a time, with a clock that the test moves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vcjob.webhook.certificates import Material, advance, ends_at, make_lifetimes, may_be_served, service_names

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIFETIMES = make_lifetimes(authority=timedelta(days=30), leaf=timedelta(days=9))
NAMES = service_names("hook", namespace="system")


def step(material: Material | None, *, days: float = 0.0, published: bool = True, **changes: object) -> Material:
    now = NOW + timedelta(days=days)
    return advance(material, **({"names": NAMES, "now": now, "lifetimes": LIFETIMES, "published": published} | changes))


NEW = step(None)


def test_the_first_step_makes_everything():
    assert len(NEW.bundle) == 1
    assert ends_at(NEW.certificate) == NOW + timedelta(days=9)


def test_nothing_is_due_for_two_thirds_of_a_life():
    assert step(NEW, days=5.9) is NEW


def test_then_the_leaf_is_renewed_under_the_same_authority():
    renewed = step(NEW, days=6.1)
    assert renewed.bundle == NEW.bundle
    assert ends_at(renewed.certificate) == NOW + timedelta(days=15.1)


def test_a_new_authority_joins_the_bundle_and_signs_nothing_yet():
    joined = step(NEW, days=20.1)
    assert len(joined.bundle) == 2
    assert joined.bundle[1] == NEW.bundle[0]
    assert joined.certificate == NEW.certificate


def test_it_signs_when_it_has_been_published_and_has_settled():
    leaf_of_old = step(step(NEW, days=19.9), days=20.1)
    settled = 20.1 + LIFETIMES.settle / timedelta(days=1) + 0.001
    assert step(leaf_of_old, days=20.1001) is leaf_of_old
    assert step(leaf_of_old, days=settled, published=False) is leaf_of_old
    assert step(leaf_of_old, days=settled).certificate != leaf_of_old.certificate


def test_a_leaf_is_never_served_before_its_authority_has_settled():
    anew = step(None)
    assert not may_be_served(anew, now=NOW + timedelta(seconds=1), lifetimes=LIFETIMES)
    assert may_be_served(anew, now=NOW + LIFETIMES.settle, lifetimes=LIFETIMES)


def test_an_authority_leaves_the_bundle_when_it_has_run_out():
    renewed = step(step(step(step(NEW, days=19.9), days=20.1), days=21), days=27.1)
    assert NEW.bundle[0] in step(renewed, days=29.9).bundle
    assert NEW.bundle[0] not in step(renewed, days=30.1).bundle


def test_a_leaf_does_not_outlive_its_authority():
    late = step(NEW, days=18)
    assert ends_at(late.certificate) <= ends_at(NEW.bundle[0])


def test_other_names_need_another_leaf():
    renamed = step(NEW, days=1, names=(*NAMES, "127.0.0.1"))
    assert renamed.bundle == NEW.bundle
    assert renamed.certificate != NEW.certificate


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(replace(NEW, key=step(None).key), id="a key of another leaf"),
        pytest.param(replace(NEW, authority_key=b"rubbish"), id="rubbish for a key"),
        pytest.param(replace(NEW, certificate=b""), id="no leaf"),
        pytest.param(replace(NEW, bundle=()), id="no authority"),
        pytest.param(replace(NEW, bundle=step(None).bundle), id="another authority"),
    ],
)
def test_what_does_not_fit_together_is_made_anew(broken: Material):
    anew = step(broken, trusted=NEW.bundle)
    assert anew.bundle[1:] == NEW.bundle  # a replica may still serve under it
    assert step(anew) is anew


def test_no_key_shows_in_a_text():
    assert "PRIVATE" not in repr(NEW)
    assert "key" not in repr(NEW)

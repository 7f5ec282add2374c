"""`vcjob webhook` answers mistakes with a sentence and exit code 2."""

import pytest
from click.testing import CliRunner

from vcjob.cli.webhook import webhook

MANAGED = ("--manage-certs", "--webhook-service=hook.system")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param((), "give one of --cert-dir, --manage-certs and --local", id="no certificate"),
        pytest.param(("--local", "--manage-certs"), "give one of --cert-dir", id="two kinds of certificates"),
        pytest.param(("--manage-certs",), "--manage-certs needs --webhook-service NAME.NAMESPACE", id="no Service"),
        pytest.param(("--manage-certs", "--webhook-service=hook"), "needs --webhook-service", id="no namespace"),
        pytest.param(
            ("--manage-certs", "--webhook-service=hook.a.b"),
            "--webhook-service: 'hook.a.b' is not the name of a Service",
            id="no namespace either",
        ),
        pytest.param(
            ("--manage-certs", "--webhook-service=1hook.a"), "beginning with a letter", id="no name of a Service"
        ),
        pytest.param(("--local", "--scheduler-name=BAD_"), "'--scheduler-name'", id="no name of a scheduler"),
        pytest.param((*MANAGED, "--cert-secret=A b"), "'--cert-secret'", id="no name of a Secret"),
        pytest.param(("--local", "--webhook-configuration=A_"), "'A_' is no name, which is", id="no name at all"),
        pytest.param((*MANAGED, "--cert-extra-name=a b"), "neither a host name nor an address", id="no host"),
        pytest.param(
            (*MANAGED, "--ca-validity-days=400"), "at most a third of --ca-validity-days", id="short authority"
        ),
        pytest.param(("--local", "--webhook-bind-address=0"), "the webhook needs a port", id="no port"),
        pytest.param(("--local", "--webhook-bind-address=x"), "is no bind address", id="no address"),
    ],
)
def test_a_mistake_is_named(flags: tuple[str, ...], sentence: str):
    done = CliRunner().invoke(webhook, flags)
    assert done.exit_code == 2
    assert sentence in done.output.replace("\n", " ")


def test_every_option_can_be_given_in_the_environment():
    assert all(option.envvar for option in webhook.params)

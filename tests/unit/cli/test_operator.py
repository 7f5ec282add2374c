"""`vcjob operator`: wrong words are named before anything is started."""

import click
import pytest
from click.testing import CliRunner, Result

from vcjob.cli.main import main
from vcjob.cli.operator import operator

NO_KUBECONFIG = {"KUBECONFIG": "/does/not/exist"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--gang-scheduler", "kueue", "'kueue' is not one of 'none', 'volcano'"),
        ("--log-level", "loud", "'loud' is not one of"),
        ("--log-format", "xml", "'xml' is not one of"),
        ("--health-bind-address", "nowhere", "'nowhere' is no bind address"),
        ("--metrics-bind-address", ":99999", "':99999' is no bind address"),
        ("--scheduler-name", " ", "' ' is no name of a scheduler, which is at most 63 lower-case letters"),
        ("--scheduler-name", "BAD_", "'BAD_' is no name of a scheduler"),
        ("--scheduler-name", "a..b", "with a letter or digit at both ends and around each dot"),
        ("--scheduler-name", "s" * 64, "at most 63 lower-case letters"),
        ("--namespace", "Not/AName", "'Not/AName' is no namespace"),
        ("--leader-elect-namespace", "a_b", "'a_b' is no namespace, which is at most 63 lower-case letters, digits"),
        ("--leader-elect-namespace", "n" * 64, "is no namespace"),
        ("--leader-elect", "perhaps", "'perhaps' is not a valid boolean"),
    ],
)
def test_a_wrong_value_is_named_wherever_it_comes_from(option: str, value: str, words: str) -> None:
    variable = f"VCJOB_{option.removeprefix('--').replace('-', '_').upper()}"
    found = CliRunner().invoke(main, ["operator"], env={**NO_KUBECONFIG, variable: value})
    assert_usage_error(found, option=option, words=words)
    if option != "--leader-elect":  # a flag takes no value on the command line
        found = CliRunner().invoke(main, ["operator", option, value], env=NO_KUBECONFIG)
        assert_usage_error(found, option=option, words=words)


def assert_usage_error(found: Result, *, option: str, words: str) -> None:
    said = " ".join(found.output.split())
    assert words in said
    assert option in said
    assert found.exit_code == 2


@pytest.mark.parametrize("name", ["volcano", "my-scheduler.example.com", "7", "s" * 63])
def test_a_scheduler_may_have_every_name_that_a_job_can_ask_for(name: str) -> None:
    (option,) = (parameter for parameter in operator.params if parameter.name == "scheduler_name")
    context = click.Context(operator)
    assert option.process_value(context, name) == name


@pytest.mark.parametrize("arguments", [["--namespace", ""], ["--no-such-flag"], ["there-is-no-argument"]])
def test_what_makes_no_sense_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["operator", *arguments], env=NO_KUBECONFIG).exit_code == 2

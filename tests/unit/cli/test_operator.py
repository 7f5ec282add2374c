"""`vcjob operator`: wrong words are named before anything is started."""

import pytest
from click.testing import CliRunner

from vcjob.cli.main import main

NO_KUBECONFIG = {"KUBECONFIG": "/does/not/exist"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--gang-scheduler", "kueue", "'kueue' is not one of 'none', 'volcano'"),
        ("--log-level", "loud", "'loud' is not one of"),
        ("--log-format", "xml", "'xml' is not one of"),
        ("--health-bind-address", "nowhere", "'nowhere' is no bind address"),
        ("--metrics-bind-address", ":99999", "':99999' is no bind address"),
        ("--scheduler-name", " ", "it is empty"),
        ("--namespace", "Not/AName", "'Not/AName' is no namespace"),
        ("--leader-elect-namespace", "a_b", "'a_b' is no namespace"),
        ("--leader-elect", "perhaps", "'perhaps' is not a valid boolean"),
    ],
)
def test_a_wrong_value_is_named_wherever_it_comes_from(option: str, value: str, words: str) -> None:
    variable = f"VCJOB_{option.removeprefix('--').replace('-', '_').upper()}"
    found = CliRunner().invoke(main, ["operator"], env={**NO_KUBECONFIG, variable: value})
    assert words in found.output
    assert found.exit_code == 2
    if option != "--leader-elect":  # a flag takes no value on the command line
        found = CliRunner().invoke(main, ["operator", option, value], env=NO_KUBECONFIG)
        assert words in found.output
        assert found.exit_code == 2


@pytest.mark.parametrize("arguments", [["--namespace", ""], ["--no-such-flag"], ["there-is-no-argument"]])
def test_what_makes_no_sense_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["operator", *arguments], env=NO_KUBECONFIG).exit_code == 2

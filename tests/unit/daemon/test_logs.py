"""Log lines for people, which programs can take apart nevertheless."""

import logging

import pytest

from vcjob.daemon.logs import set_up_logging


@pytest.fixture(autouse=True)
def root():
    """Keep the handlers that the test's runner has put there."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("ns/job", "ns/job"),
        (3, "3"),
        ("", '""'),
        ("two words", '"two words"'),
        ('pods "a" is', r'"pods \"a\" is"'),
        ("a=b", '"a=b"'),
        ("one\ntwo", r'"one\ntwo"'),
        ("größe 3", '"größe 3"'),
        ("a\0b\x1b[1m", r'"a\u0000b\u001b[1m"'),
    ],
)
def test_a_value_with_special_characters_is_quoted(value: object, written: str, capsys: pytest.CaptureFixture[str]):
    set_up_logging(level="info", form="text")
    logging.getLogger("vcjob.test").info("fact", extra={"key": value})
    assert capsys.readouterr().err.rstrip("\n").endswith(f"INFO    fact key={written}")

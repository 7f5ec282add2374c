"""Arguments of plugins: nothing valid is lost, nothing wrong is silent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.plugins.base import Flag
from vcjob.plugins.flags import parse_arguments

FLAGS = (
    Flag(name="path", kind=str, default="/root", help=""),
    Flag(name="key", kind=str, default="", help=""),
    Flag(name="port", kind=int, default=22, help="", minimum=1, maximum=65535, aliases=("ssh-port",)),
    Flag(name="any", kind=int, default=0, help=""),
    Flag(name="wait", kind=bool, default=False, help=""),
    Flag(name="inject", kind=bool, default=True, help=""),
)
DEFAULTS = {flag.name: flag.default for flag in FLAGS}


def parse(*elements: str) -> dict[str, Any]:
    return dict(parse_arguments(elements, plugin="demo", flags=FLAGS).values)


def texts(*elements: str) -> list[str]:
    return [note.message for note in parse_arguments(elements, plugin="demo", flags=FLAGS).notes]


@pytest.mark.parametrize(
    ("elements", "changed"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(["--path=/x"], {"path": "/x"}, id="two dashes"),
        pytest.param(["-path=/x"], {"path": "/x"}, id="one dash"),
        pytest.param(["--path", "/x"], {"path": "/x"}, id="value in the next element"),
        pytest.param(["--path=a=b"], {"path": "a=b"}, id="value with an equals sign"),
        pytest.param(["--key=", "--port=3"], {"key": "", "port": 3}, id="empty value where empty is the default"),
        pytest.param(["--key", "-----BEGIN KEY-----\nx"], {"key": "-----BEGIN KEY-----\nx"}, id="value with dashes"),
        pytest.param(["--wait"], {"wait": True}, id="bare boolean"),
        pytest.param(["--inject=0"], {"inject": False}, id="boolean by number"),
        pytest.param(["--wait=T", "--inject=False"], {"wait": True, "inject": False}, id="boolean by word"),
        pytest.param(["--ssh-port=23"], {"port": 23}, id="alias"),
        pytest.param(["--port=23", "-ssh-port", "24"], {"port": 24}, id="the last mention wins"),
    ],
)
def test_valid_arguments_are_honoured(elements: list[str], changed: dict[str, Any]) -> None:
    assert parse(*elements) == DEFAULTS | changed
    assert texts(*elements) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-1", -1),
        ("+7", 7),
        ("0x1F", 31),
        ("0X1f", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("0x_ff", 255),
        ("0_7", 7),
        ("00", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, number: int) -> None:
    assert parse(f"--any={text}")["any"] == number


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1.0", "1e3", "08", "0xg", "0b2", "_1", "1_", "1__0", "one", "١", "9223372036854775808", "9" * 5000],
)
def test_what_is_no_integer_leaves_the_default(text: str) -> None:
    assert parse(f"--any={text}") == DEFAULTS
    assert len(texts(f"--any={text}")) == 1


@pytest.mark.parametrize(
    ("elements", "fragments"),
    [
        pytest.param(["--wait=maybe"], ['"--wait=maybe"', "not a boolean", "wait stays false"], id="bad boolean"),
        pytest.param(["--port=0"], ['"0" is not between 1 and 65535', "port stays"], id="out of range"),
        pytest.param(["--prot=3"], ["no such argument", "did you mean --port?", "demo knows --path"], id="misspelt"),
        pytest.param(["--no-root"], ["no such argument", "demo knows"], id="unknown"),
        pytest.param(["-h"], ["no such argument"], id="help"),
        pytest.param(["junk"], ['"junk"', "--name=value"], id="no flag"),
        pytest.param(["--"], ['"--"'], id="terminator"),
        pytest.param(["---path=/x"], ["--name=value"], id="three dashes"),
        pytest.param(["--=x"], ["--name=value"], id="no name"),
        pytest.param(["--path"], ["its value is missing", "--path=/root"], id="value missing at the end"),
        pytest.param(["--key", "--wait"], ["its value is missing", "--key=VALUE"], id="a flag instead of the value"),
        pytest.param(["--path="], ["its value is empty", 'path stays "/root"'], id="empty value"),
        pytest.param(["--wait", "false"], ["--wait=false"], id="boolean with a separate value"),
    ],
)
def test_a_bad_argument_is_named_and_costs_only_itself(elements: list[str], fragments: list[str]) -> None:
    found = texts("--any=5", *elements, "--inject=false")
    assert len(found) == 1
    assert all(fragment in found[0] for fragment in ["demo: argument", *fragments])
    assert parse("--any=5", *elements, "--inject=false")["any"] == 5
    assert parse("--any=5", *elements, "--inject=false")["inject"] is False


def test_a_plugin_without_flags_says_that_it_takes_none() -> None:
    parsed = parse_arguments(["--whatever=1"], plugin="env", flags=())
    assert [note.message for note in parsed.notes] == ['env: argument "--whatever" is ignored: env takes no arguments']


def test_texts_never_repeat_a_key() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "c2VjcmV0" * 200
    for elements in ([f"--privat-key={key}"], ["--privat-key", key], [key], [f"--port={key}"]):
        assert all("c2VjcmV0" not in text and len(text) < 400 for text in texts(*elements))


VALID = st.one_of(
    st.builds(lambda v: (f"--path={v}", "path", v), st.text(min_size=1)),
    st.builds(lambda v: (f"-key={v}", "key", v), st.text()),
    st.builds(lambda v: (f"--port={v}", "port", v), st.integers(1, 65535)),
    st.builds(lambda v: (f"--any={v:#x}", "any", v), st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda v: (f"--wait={str(v).lower()}", "wait", v), st.booleans()),
)
JUNK = st.one_of(
    st.text(),
    st.text().map(lambda text: f"--{text}"),
    st.sampled_from(["--port=x", "--wait=2", "--", "-", "--unknown=1", "--port=", "--any=0x", "junk"]),
)


@given(st.lists(JUNK))
def test_parsing_never_raises(elements: list[str]) -> None:
    """Whatever a user writes, every flag has a value of its kind."""
    values = parse(*elements)
    assert all(type(values[flag.name]) is flag.kind for flag in FLAGS)


@given(st.lists(st.one_of(VALID, JUNK.map(lambda text: (text, "", None)))))
def test_valid_arguments_are_honoured_among_any_others(elements: list[tuple[str, str, Any]]) -> None:
    """The last valid mention of each flag counts, whatever stands around it."""
    texts_only = [text for text, _, _ in elements]
    values = parse(*texts_only)
    for name in ("path", "key", "port", "any", "wait"):
        mentions = [(text, value) for text, flag, value in elements if flag == name]
        junk = [text for text, flag, _ in elements if not flag and text.lstrip("-").partition("=")[0] in _names(name)]
        if mentions and not junk:
            assert values[name] == mentions[-1][1]


def _names(name: str) -> set[str]:
    return {found for flag in FLAGS if flag.name == name for found in (flag.name, *flag.aliases)}

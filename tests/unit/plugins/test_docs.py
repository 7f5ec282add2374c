"""The pages in docs/plugins say what the code does."""

from pathlib import Path

import pytest

from vcjob.plugins.base import Flag
from vcjob.plugins.docs import PAGES, arguments_table, refresh
from vcjob.plugins.registry import find_plugin, known_names

ROOT = Path(__file__).parents[3]
DOCS = sorted((ROOT / PAGES).glob("*.md"))


def read(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", [pytest.param(path, id=path.stem) for path in DOCS])
def test_pages_are_up_to_date(page: Path) -> None:
    assert refresh(page.read_text(), read=read) == page.read_text(), "run python -m vcjob.plugins.docs"


@pytest.mark.parametrize("name", known_names())
def test_every_plugin_has_a_page_with_its_arguments(name: str) -> None:
    page = read(f"{PAGES}/{name}.md")
    plugin = find_plugin(name)
    assert plugin is not None
    assert f"<!-- arguments {name} -->" in page
    assert all(f"| `{flag.name}`" in page for flag in plugin.flags)
    assert f"[{name}]({name}.md)" in read(f"{PAGES}/README.md")


def test_the_pages_show_every_example() -> None:
    text = "".join(path.read_text() for path in DOCS) + read("examples/README.md")
    assert [path.name for path in sorted((ROOT / "examples").glob("*.yaml")) if path.name not in text] == []


def test_a_table_shows_kind_bounds_default_and_aliases() -> None:
    flags = (
        Flag(name="port", kind=int, default=1, help="A port.", minimum=1, maximum=9, aliases=("p",)),
        Flag(name="key", kind=str, default="", help="A key."),
        Flag(name="wait", kind=bool, default=False, help="Whether to wait."),
        Flag(name="seconds", kind=int, default=3, help="How long.", minimum=1),
    )
    assert arguments_table(flags).splitlines()[2:] == [
        "| `port` or `p` | integer, 1 to 9 | `1` | A port. |",
        "| `key` | string | none | A key. |",
        "| `wait` | boolean | `false` | Whether to wait. |",
        "| `seconds` | integer, at least 1 | `3` | How long. |",
    ]


def test_an_outdated_part_is_made_anew_and_the_rest_stays() -> None:
    page = "before\n<!-- arguments env -->\nold\n<!-- end -->\nafter\n"
    new = refresh(page, read=read)
    assert new.startswith("before\n<!-- arguments env -->\n")
    assert new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new
    assert refresh(new, read=read) == new

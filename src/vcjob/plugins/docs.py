"""The generated parts of docs/plugins: `python -m vcjob.plugins.docs` brings them up to date.

A part stands between `<!-- KIND WORDS -->` and `<!-- end -->`. What stands there comes from the flags of a plugin or
from what the plugins make of an example, so that a page cannot say what the code does not do.

    <!-- arguments PLUGIN -->               the table of arguments
    <!-- env EXAMPLE POD -->                the variables of the Pod's first container that plugins have added
    <!-- container EXAMPLE POD -->          the Pod's first container as it is created
    <!-- data EXAMPLE KIND NAME KEY -->     one value of a ConfigMap or Secret
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from vcjob.api.job import Job

from .base import Flag, PodDraft, WantedObject
from .preview import data_of, preview_pod, visible_env
from .registry import enabled_plugins, find_plugin

__all__ = ("PAGES", "arguments_table", "main", "refresh")

PAGES: Final = Path("docs/plugins")
PART: Final = re.compile(r"(<!-- (arguments|env|container|data) ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
KINDS: Final = {bool: "boolean", int: "integer", str: "string"}


def refresh(page: str, *, read: Callable[[str], str]) -> str:
    """Return a page with its generated parts made anew; `read` returns the text of a file of the repository."""

    def part(match: re.Match[str]) -> str:
        opening, kind, words, closing = match.groups()
        return f"{opening}{_render(kind, words.split(), read)}{closing}"

    return PART.sub(part, page)


def arguments_table(flags: tuple[Flag, ...]) -> str:
    """Return the table of a plugin's arguments."""
    if not flags:
        return "It takes no arguments; any that are given are ignored, with a warning.\n"
    rows = ["| Argument | Type | Default | Meaning |", "|---|---|---|---|"]
    for flag in flags:
        names = " or ".join(f"`{name}`" for name in (flag.name, *flag.aliases))
        default = str(flag.default).lower() if flag.kind is bool else str(flag.default)
        rows.append(f"| {names} | {_kind(flag)} | {f'`{default}`' if default else 'none'} | {flag.help} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Bring every page up to date and say which ones changed."""
    for path in sorted(PAGES.glob("*.md")):
        old = path.read_text()
        new = refresh(old, read=lambda name: Path(name).read_text())
        if new != old:
            path.write_text(new)
            sys.stdout.write(f"{path} brought up to date\n")
    return 0


def _kind(flag: Flag) -> str:
    kind = KINDS[flag.kind]
    if flag.minimum is not None and flag.maximum is not None:
        return f"{kind}, {flag.minimum} to {flag.maximum}"
    return f"{kind}, at least {flag.minimum}" if flag.minimum is not None else kind


def _render(kind: str, words: list[str], read: Callable[[str], str]) -> str:
    if kind == "arguments":
        plugin = find_plugin(words[0])
        return f"\n{arguments_table(plugin.flags if plugin else ())}\n"
    job = _example(read(words[0]))
    wanted = [found for plugin in enabled_plugins(job) for found in plugin.on_job_add()]
    if kind == "data":
        return _block("text", data_of(_object(wanted, kind=words[1], name=words[2]))[words[3]])
    pod = _pod(job, words[1])
    container = pod.containers[0]
    if kind == "container":
        return _block("yaml", yaml.safe_dump(container, sort_keys=False, width=1000))
    own = {entry["name"] for entry in pod.task.pod_spec["containers"][0].get("env") or ()}
    env = visible_env(container, wanted)
    return _block("text", "\n".join(f"{name}={value}" for name, value in env.items() if name not in own))


def _block(language: str, text: str) -> str:
    return f"\n```{language}\n{text.rstrip()}\n```\n\n"


def _example(text: str) -> Job:
    raw: dict[str, Any] = yaml.safe_load(text)
    raw["metadata"].setdefault("namespace", "default")
    return Job.model_validate(raw)


def _pod(job: Job, name: str) -> PodDraft:
    names = {
        f"{job.name}-{task.name}-{index}": (task, index) for task in job.spec.tasks for index in range(task.replicas)
    }
    task, index = names[name]
    return preview_pod(job, task=task, index=index)


def _object(wanted: list[WantedObject], *, kind: str, name: str) -> WantedObject:
    return next(found for found in wanted if (found.ref.kind, found.ref.name) == (kind, name))


if __name__ == "__main__":
    sys.exit(main())

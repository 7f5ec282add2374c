"""What the plugins of a Job say about it. Pure as far as they are.

A plugin that raises costs its own Job a problem, never the answer.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from vcjob.api.job import Job
from vcjob.plugins.registry import broken_plugins, enabled_plugins, known_names, unknown_plugins

from .problem import Problem

__all__ = ("check_plugins", "plugin_warnings")


def check_plugins(job: Job) -> Iterator[Problem]:
    """Yield unknown plugins, and what makes a known one impossible for the Job."""
    for name in unknown_plugins(job):
        message = f"unable to find job plugin: {name}"
        if reason := broken_plugins().get(name):
            message = f"{message}: {reason}"
        elif close := get_close_matches(name, known_names(), n=1):
            message = f"{message}; did you mean {close[0]}?"
        else:
            message = f"{message}; there are {', '.join(known_names())}"
        yield Problem(field="spec.plugins", value=name, message=message)
    yield from _own_problems(job)


def plugin_warnings(job: Job) -> Iterator[str]:
    """Yield what the plugins want the user to hear: arguments not understood, parts left out."""
    try:
        for plugin in enabled_plugins(job):
            yield from (f"spec.plugins.{plugin.name}: {_without(plugin.name, note.message)}" for note in plugin.notes())
    except Exception as error:
        yield f"spec.plugins: a plugin failed: {type(error).__name__}: {error}"


def _own_problems(job: Job) -> Iterator[Problem]:
    try:
        for plugin in enabled_plugins(job):
            for sentence in plugin.problems():
                yield Problem(field=f"spec.plugins.{plugin.name}", value=None, message=_without(plugin.name, sentence))
    except Exception as error:  # a template with anything in it, or the code of another package
        message = f"a plugin failed: {type(error).__name__}: {error}"
        yield Problem(field="spec.plugins", value=None, message=message)


def _without(name: str, sentence: str) -> str:
    """Return what a plugin says without the name with which it begins: the field says it already."""
    return sentence.removeprefix("plugin ").removeprefix(f"{name}: ")

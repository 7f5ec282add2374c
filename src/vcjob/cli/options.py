"""What the long-running commands have in common: every option is also read from the environment."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ("bind_address", "namespace", "option", "some_text")

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_F = TypeVar("_F", bound=Callable[..., Any])


def option(name: str, *names: str, **kwargs: Any) -> Callable[[_F], _F]:
    """Return a click option that is also read from the environment."""
    variable = "VCJOB_" + name.split("/")[0].removeprefix("--").replace("-", "_").upper()
    return click.option(name, *names, envvar=variable, show_envvar=True, show_default=True, **kwargs)


def bind_address(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    """Read an address for click."""
    from vcjob.operator.settings import parse_bind_address

    try:
        return parse_bind_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def some_text(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check for click that a text is not empty."""
    if not value.strip():
        raise click.BadParameter("it is empty", context, parameter)
    return value


def namespace(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Check one or several namespaces for click; of several equal ones the first counts."""
    for name in (value,) if isinstance(value, str) else value or ():
        if _LABEL.fullmatch(name) is None:
            raise click.BadParameter(f"{name!r} is no namespace", context, parameter)
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value

"""What the long-running commands have in common: every option is also read from the environment."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ("bind_address", "option")

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

"""What the long-running commands have in common: every option is also read from the environment."""

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final, TypeVar

import click

__all__ = (
    "LABEL",
    "bind_address",
    "host_names",
    "is_label",
    "is_service_name",
    "namespace",
    "object_name",
    "option",
    "scheduler_name",
)

LABEL: Final = "at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends"
_LETTERS: Final = "lower-case letters, digits, dashes and dots, with a letter or digit at both ends and around each dot"
# Written again: the rules of admission are in modules that a kubectl-like command need not wait for.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*", re.ASCII)
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


def namespace(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Check one or several namespaces for click; of several equal ones the first counts."""
    for name in (value,) if isinstance(value, str) else value or ():
        if not is_label(name):
            raise click.BadParameter(f"{name!r} is no namespace, which is {LABEL}", context, parameter)
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value


def object_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the name of an object for click."""
    if len(value) > 253 or _SUBDOMAIN.fullmatch(value) is None:
        raise click.BadParameter(f"{value!r} is no name, which is at most 253 {_LETTERS}", context, parameter)
    return value


def scheduler_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the name of a scheduler for click: one that a Job can ask for too."""
    if len(value) > 63 or _SUBDOMAIN.fullmatch(value) is None:
        message = f"{value!r} is no name of a scheduler, which is at most 63 {_LETTERS}"
        raise click.BadParameter(message, context, parameter)
    return value


def host_names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check host names and addresses for click; a name may begin with `*.`."""
    for name in value:
        if not _is_address(name) and _SUBDOMAIN.fullmatch(name.removeprefix("*.")) is None:
            raise click.BadParameter(f"{name!r} is neither a host name nor an address", context, parameter)
    return value


def is_label(name: str) -> bool:
    """Whether a name is a DNS label, as those of namespaces are."""
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def is_service_name(name: str) -> bool:
    """Whether a name can be that of a Service: a DNS label that begins with a letter."""
    return is_label(name) and name[0].isalpha()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

"""What the long-running commands have in common: every option is also read from the environment."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final, TypeVar

import click

__all__ = (
    "LABEL",
    "bind_address",
    "host_names",
    "namespace",
    "object_name",
    "option",
    "scheduler_name",
)

LABEL: Final = "at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends"
_LETTERS: Final = "lower-case letters, digits, dashes and dots, with a letter or digit at both ends and around each dot"
_F = TypeVar("_F", bound=Callable[..., Any])


def option(name: str, *names: str, **kwargs: Any) -> Callable[[_F], _F]:
    """Return a click option that is also read from the environment."""
    variable = "VCJOB_" + name.split("/")[0].removeprefix("--").replace("-", "_").upper()
    return click.option(name, *names, envvar=variable, show_envvar=True, show_default=True, **kwargs)


def bind_address(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    """Read an address for click."""
    from vcjob.daemon.addresses import parse_bind_address

    try:
        return parse_bind_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def namespace(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Check one or several namespaces for click; of several equal ones the first counts."""
    from vcjob.admission.names import is_dns_label

    for name in (value,) if isinstance(value, str) else value or ():
        if not is_dns_label(name):
            raise click.BadParameter(f"{name!r} is no namespace, which is {LABEL}", context, parameter)
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value


def object_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the name of an object for click."""
    from vcjob.admission.names import SUBDOMAIN_MAX, is_dns_subdomain

    if not is_dns_subdomain(value):
        message = f"{value!r} is no name, which is at most {SUBDOMAIN_MAX} {_LETTERS}"
        raise click.BadParameter(message, context, parameter)
    return value


def scheduler_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the name of a scheduler for click: one that a Job can ask for too."""
    from vcjob.admission.names import LABEL_MAX, is_dns_subdomain

    if len(value) > LABEL_MAX or not is_dns_subdomain(value):
        message = f"{value!r} is no name of a scheduler, which is at most {LABEL_MAX} {_LETTERS}"
        raise click.BadParameter(message, context, parameter)
    return value


def host_names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check host names and addresses for click; a name may begin with `*.`."""
    from vcjob.admission.names import is_dns_subdomain

    for name in value:
        if not _is_address(name) and not is_dns_subdomain(name.removeprefix("*.")):
            raise click.BadParameter(f"{name!r} is neither a host name nor an address", context, parameter)
    return value


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

"""`vcjob operator`: run the controller."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ("operator",)


_F = TypeVar("_F", bound=Callable[..., Any])


def _option(name: str, *names: str, **kwargs: Any) -> Callable[[_F], _F]:
    """Return a click option that is also read from the environment."""
    variable = "VCJOB_" + name.split("/")[0].removeprefix("--").replace("-", "_").upper()
    return click.option(name, *names, envvar=variable, show_envvar=True, show_default=True, **kwargs)


def _bind_address(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    from vcjob.operator.settings import parse_bind_address

    try:
        return parse_bind_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


@click.command()
@_option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Default: in-cluster, else KUBECONFIG.")
@_option("--context", help="Context of the kubeconfig; default: its current one.")
@_option("--namespace", "namespaces", multiple=True, help="Watch this namespace only; may be given several times.")
@_option("--gang-scheduler", type=click.Choice(["none", "volcano"]), default="none", help="Who starts gangs.")
@_option("--scheduler-name", default="volcano", help="The schedulerName that means the gang scheduler.")
@_option("--leader-elect/--no-leader-elect", default=True, help="Let one of several replicas work.")
@_option("--leader-elect-namespace", help="Namespace of the Lease; default: the operator's own.")
@_option("--health-bind-address", default=":8081", callback=_bind_address, help="/livez and /readyz; 0: off.")
@_option("--metrics-bind-address", default=":8080", callback=_bind_address, help="/metrics; 0: off.")
@_option("--log-level", type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False), default="info")
@_option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def operator(context: click.Context, /, **given: Any) -> None:
    """Run the operator until SIGTERM."""
    # Imported late: a kubectl-like command must not wait for the controller's libraries.
    from vcjob.kube.credentials import CredentialsError
    from vcjob.operator.process import run_operator
    from vcjob.operator.settings import OperatorSettings

    given["health"] = given.pop("health_bind_address")
    given["metrics"] = given.pop("metrics_bind_address")
    try:
        code = run_operator(OperatorSettings(**given))
    except CredentialsError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot listen: {error}") from error
    context.exit(code)

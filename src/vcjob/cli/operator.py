"""`vcjob operator`: run the controller."""

from pathlib import Path
from typing import Any

import click

from .options import bind_address, namespace, option, scheduler_name

__all__ = ("operator",)


@click.command()
@option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Default: KUBECONFIG, else in-cluster.")
@option("--context", help="Context of the kubeconfig; default: its current one.")
@option(
    "--namespace",
    "namespaces",
    multiple=True,
    callback=namespace,
    help="Watch this namespace only; may be given several times.",
)
@option("--gang-scheduler", type=click.Choice(["none", "volcano"]), default="none", help="Who starts gangs.")
@option(
    "--scheduler-name",
    default="volcano",
    callback=scheduler_name,
    help="The schedulerName that means the gang scheduler.",
)
@option("--leader-elect/--no-leader-elect", default=True, help="Let one of several replicas work.")
@option("--leader-elect-namespace", callback=namespace, help="Namespace of the Lease; default: the operator's own.")
@option("--health-bind-address", default=":8081", callback=bind_address, help="/livez and /readyz; 0: off.")
@option("--metrics-bind-address", default=":8080", callback=bind_address, help="/metrics; 0: off.")
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False), default="info")
@option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def operator(context: click.Context, /, **given: Any) -> None:
    """Run the operator until SIGTERM."""
    # Imported late: a kubectl-like command must not wait for the controller's libraries.
    from vcjob.daemon.health import CannotListen
    from vcjob.kube.credentials import CredentialsError
    from vcjob.operator.process import run_operator
    from vcjob.operator.settings import OperatorSettings

    given["health"] = given.pop("health_bind_address")
    given["metrics"] = given.pop("metrics_bind_address")
    try:
        code = run_operator(OperatorSettings(**given))
    except (CannotListen, CredentialsError) as error:
        raise click.ClickException(str(error)) from error
    context.exit(code)

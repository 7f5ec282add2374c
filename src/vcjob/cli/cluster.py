"""`vcjob cluster`: a real Kubernetes control plane on this machine, in seconds, without containers.

Owns the words that the user reads; the work is in `vcjob.cluster`. An expected failure is one sentence and exit code 1.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import click

from vcjob.cluster.binaries import find_binaries
from vcjob.cluster.errors import ClusterError
from vcjob.cluster.manifests import Crds
from vcjob.cluster.plane import UpRequest, down, require, status, up
from vcjob.cluster.progress import Progress
from vcjob.cluster.record import Phase
from vcjob.cluster.versions import KUBECTL, TOOLS

__all__ = ("cluster",)

_P = ParamSpec("_P")

_name_option = click.option(
    "--name", default="default", show_default=True, envvar="VCJOB_CLUSTER", show_envvar=True, help="Which cluster."
)


def _with_sentences(command: Callable[_P, None]) -> Callable[_P, None]:
    """Turn expected failures into a sentence and exit code 1."""

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ClusterError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:  # no room, no permission, no /proc: the system's own sentence is the best there is
            raise click.ClickException(str(error)) from error

    return run


@click.group()
def cluster() -> None:
    """Run a real Kubernetes control plane on this machine: etcd, API server, controller manager and scheduler.

    It listens on loopback only, needs no containers and no root, and keeps its state in one folder. Several can run
    side by side, each under its own name.
    """


@cluster.command("up")
@_name_option
@click.option(
    "--nodes",
    type=click.IntRange(min=0, max=1000),
    help="Fake nodes: their Pods run at once, without any container (see docs/local-cluster.md). "
    "Default: as many as there are; at first none.",
)
@click.option(
    "--crds/--no-crds", default=True, show_default=True, help="Install the project's CustomResourceDefinitions."
)
@click.option(
    "--controllers/--no-controllers",
    default=True,
    show_default=True,
    help="Without: etcd and an API server only, for measuring; nothing schedules, collects or makes accounts.",
)
@click.option("--audit-log", is_flag=True, help="Log who did what to which object (only when the cluster is new).")
@click.option(
    "--apiserver-flag",
    "apiserver_flags",
    metavar="NAME=VALUE",
    multiple=True,
    help="A flag of kube-apiserver, e.g. disable-admission-plugins=ServiceAccount (only when the cluster is new).",
)
@_with_sentences
def up_command(
    name: str, nodes: int | None, crds: bool, controllers: bool, audit_log: bool, apiserver_flags: tuple[str, ...]
) -> None:
    """Start a cluster and wait until it can be used. On a running cluster it only adds what is missing."""
    request = UpRequest(
        name=name,
        nodes=nodes,
        crds=Crds.INSTALL if crds else Crds.LEAVE_OUT,
        audit=audit_log,
        controllers=controllers,
        apiserver_flags=dict(_parted(flag) for flag in apiserver_flags),
    )
    try:
        result = up(request, say=Progress())
    except KeyboardInterrupt:
        click.echo("interrupted; what this command had started is gone", err=True)
        raise click.exceptions.Exit(130) from None
    for note in result.notes:
        click.echo(f"note: {note}", err=True)
    if result.started:
        click.echo(f"cluster {name!r} is up after {result.seconds:.1f} s: {result.record.url}")
    else:
        click.echo(f"cluster {name!r} runs already: {result.record.url}")
    if result.record.nodes:
        click.echo(f"fake nodes: {result.record.nodes}")
    if result.record.audit:
        click.echo(f"audit log: {result.paths.audit_log}")
    click.echo(f"export KUBECONFIG={result.paths.admin_kubeconfig}")


def _parted(flag: str) -> tuple[str, str]:
    name, equals, value = flag.removeprefix("--").partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{flag!r} is no NAME=VALUE", param_hint="--apiserver-flag")
    return name, value


@cluster.command("down")
@_name_option
@_with_sentences
def down_command(name: str) -> None:
    """End a cluster and remove all that it kept."""
    if down(name, say=Progress()):
        click.echo(f"cluster {name!r} is gone")
    else:
        click.echo(f"there is no cluster {name!r}; nothing to do")


@cluster.command("status")
@_name_option
@_with_sentences
def status_command(name: str) -> None:
    """Show a cluster's components. Exit code 1 when one of them does not run, or there is no such cluster."""
    found = status(name)
    record = found.record
    click.echo(f"cluster     {record.name}")
    click.echo(f"kubernetes  {record.kubernetes}")
    click.echo(f"server      {record.url}")
    click.echo(f"folder      {found.paths.folder}")
    click.echo(f"fake nodes  {record.nodes}")
    for entry in found.components:
        component = entry.component
        state = f"runs, pid {component.process.pid}" if entry.alive else "ended"
        click.echo(f"{component.name:24}{state:20}{component.log}")
    if record.phase is Phase.STARTING:
        click.echo("it is being started, or that was cut short; `vcjob cluster up` makes sure")
    if not found.healthy:
        raise click.exceptions.Exit(1)


@cluster.command("kubeconfig")
@_name_option
@click.option("--operator", is_flag=True, help="The operator's own identity, with its least rights.")
@_with_sentences
def kubeconfig_command(name: str, operator: bool) -> None:
    """Print the path of a kubeconfig file, by default the administrator's."""
    paths = require(name)
    click.echo(paths.operator_kubeconfig if operator else paths.admin_kubeconfig)


@cluster.command("binaries")
@_with_sentences
def binaries_command() -> None:
    """Find, download or build the programs that a cluster needs, and say where they are."""
    for name, path in find_binaries(TOOLS, say=Progress()).items():
        click.echo(f"{name:24}{path}")


@cluster.command(
    "kubectl",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@_name_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_with_sentences
def kubectl_command(name: str, arguments: tuple[str, ...]) -> None:
    """Run kubectl of the same version as the cluster's administrator, e.g. `vcjob cluster kubectl get pods`."""
    paths = require(name)
    program = find_binaries((KUBECTL,), say=Progress())[KUBECTL.name]
    env: dict[str, Any] = os.environ | {"KUBECONFIG": str(paths.admin_kubeconfig)}
    os.execve(program, [KUBECTL.name, *arguments], env)

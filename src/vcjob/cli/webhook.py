"""`vcjob webhook`: run the admission server."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from .options import (
    LABEL,
    bind_address,
    host_names,
    object_name,
    option,
    scheduler_name,
)

__all__ = ("webhook",)

_KINDS = {"none": ("jobs",), "volcano": ("jobs", "podgroups", "queues")}  # by gang scheduler


@click.command()
@option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Default: KUBECONFIG, else in-cluster.")
@option("--context", help="Context of the kubeconfig; default: its current one.")
@option(
    "--admission",
    "kinds",
    type=click.Choice(_KINDS["volcano"]),
    multiple=True,
    help="Kinds to answer for; may be given several times. Default: jobs; where the gang scheduler is volcano, all.",
)
@option("--gang-scheduler", type=click.Choice(["none", "volcano"]), default="none", help="Who starts gangs.")
@option(
    "--scheduler-name",
    default="volcano",
    callback=scheduler_name,
    help="The schedulerName of a Job that names none.",
)
@option(
    "--check-queues/--no-check-queues",
    default=None,
    help="Refuse Jobs and PodGroups whose Queue would not take them. Default: where the gang scheduler is volcano.",
)
@option("--max-queue-depth", type=click.IntRange(min=1), default=5, help="Levels of Queues below root.")
@option(
    "--protect-root-queue/--no-protect-root-queue",
    default=True,
    help="Refuse changes of the root Queue's capability, deserved and guarantee.",
)
@option(
    "--keep-used-queues/--no-keep-used-queues",
    default=False,
    help="Refuse to remove a Queue while Pods hold resources of it.",
)
@option("--webhook-bind-address", help="Where reviews are answered. Default: :9443; with --local 127.0.0.1:9443.")
@option("--health-bind-address", default=":8081", callback=bind_address, help="/livez and /readyz; 0: off.")
@option("--metrics-bind-address", default=":8080", callback=bind_address, help="/metrics; 0: off.")
@option(
    "--cert-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with tls.crt and tls.key, as of a mounted Secret; read again when they change.",
)
@option("--manage-certs", is_flag=True, help="Make and renew certificates, and keep them in a Secret.")
@option("--webhook-service", metavar="NAME.NAMESPACE", help="With --manage-certs: the Service of this webhook.")
@option(
    "--cert-extra-name",
    "extra_names",
    multiple=True,
    callback=host_names,
    help="With --manage-certs: a host name or address beside the Service's; may be given several times.",
)
@option("--cert-secret", default="vcjob-webhook-cert", callback=object_name, help="With --manage-certs: the Secret.")
@option("--webhook-configuration", default="vcjob", callback=object_name, help="Name of both webhook configurations.")
@option(
    "--cert-validity-days", type=click.FloatRange(min=0, min_open=True), default=365.0, help="Life of a certificate."
)
@option("--ca-validity-days", type=click.FloatRange(min=0, min_open=True), default=1825.0, help="Life of an authority.")
@option("--local", is_flag=True, help="On a developer's machine: register https://127.0.0.1 while the process runs.")
@option(
    "--shutdown-delay",
    type=click.FloatRange(min=0),
    help="Seconds to go on answering after SIGTERM. Default: 5; with --local 0.",
)
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False), default="info")
@option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def webhook(context: click.Context, /, **given: Any) -> None:
    """Answer the API server's questions about new and changed objects until SIGTERM."""
    # Imported late: a kubectl-like command must not wait for the webhook's libraries.
    from vcjob.admission.queue_rules import QueuePolicy
    from vcjob.daemon.health import CannotListen
    from vcjob.kube.credentials import CredentialsError
    from vcjob.webhook.process import run_webhook
    from vcjob.webhook.settings import WebhookSettings

    local = given["local"]
    gang_scheduler, check_queues = given.pop("gang_scheduler"), given.pop("check_queues")
    address = given.pop("webhook_bind_address") or ("127.0.0.1:9443" if local else ":9443")
    delay = given.pop("shutdown_delay")
    settings = {
        "certificates": _certificates(given),
        "kinds": given.pop("kinds") or _KINDS[gang_scheduler],
        "queue_policy": QueuePolicy(
            max_depth=given.pop("max_queue_depth"),
            protects_root=given.pop("protect_root_queue"),
            keeps_used=given.pop("keep_used_queues"),
        ),
        "check_queues": gang_scheduler == "volcano" if check_queues is None else check_queues,
        "webhook": bind_address(context, _parameter(context, "webhook_bind_address"), address),
        "health": given.pop("health_bind_address"),
        "metrics": given.pop("metrics_bind_address"),
        "shutdown_delay_s": delay if delay is not None else 0.0 if local else 5.0,
    }
    if not settings["webhook"].port:
        raise click.UsageError("--webhook-bind-address: the webhook needs a port")
    try:
        code = run_webhook(WebhookSettings(**given, **settings))
    except (CannotListen, CredentialsError) as error:
        raise click.ClickException(str(error)) from error
    context.exit(code)


def _certificates(given: dict[str, Any]) -> Any:
    """Take the options about certificates out of `given`. Raises UsageError."""
    from vcjob.admission.names import is_dns_label
    from vcjob.webhook.certificates import make_lifetimes
    from vcjob.webhook.settings import CertificateFolder, LocalCertificate, ManagedCertificate

    folder, managed, local = given.pop("cert_dir"), given.pop("manage_certs"), given.pop("local")
    service, secret, configuration = (
        given.pop(name) for name in ("webhook_service", "cert_secret", "webhook_configuration")
    )
    extra_names = given.pop("extra_names")
    leaf, authority = given.pop("cert_validity_days"), given.pop("ca_validity_days")
    if [folder is not None, managed, local].count(True) != 1:
        raise click.UsageError("give one of --cert-dir, --manage-certs and --local: where the certificate comes from")
    if folder is not None:
        return CertificateFolder(path=folder)
    if local:
        return LocalCertificate(configuration=configuration)
    name, dot, namespace = (service or "").partition(".")
    if not (name and dot and namespace):
        raise click.UsageError("--manage-certs needs --webhook-service NAME.NAMESPACE")
    if not (is_dns_label(name) and name[0].isalpha() and is_dns_label(namespace)):
        words = f"the name of a Service, beginning with a letter, and its namespace, each {LABEL}"
        raise click.UsageError(f"--webhook-service: {service!r} is not {words}")
    if leaf > authority / 3:
        raise click.UsageError("--cert-validity-days must be at most a third of --ca-validity-days")
    return ManagedCertificate(
        service=name,
        namespace=namespace,
        secret=secret,
        configuration=configuration,
        extra_names=extra_names,
        lifetimes=make_lifetimes(authority=timedelta(days=authority), leaf=timedelta(days=leaf)),
    )


def _parameter(context: click.Context, name: str) -> click.Parameter:
    return next(parameter for parameter in context.command.params if parameter.name == name)

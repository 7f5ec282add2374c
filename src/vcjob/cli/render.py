"""`vcjob render`: what the operator would make of a Job, without a cluster."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import click
import yaml

from .documents import Dumper, load_documents
from .options import namespace as namespace_option
from .options import scheduler_name as scheduler_name_option

__all__ = ("render",)

PREFIX_MAX: Final = 58  # characters of a generateName that count
NAMES_SHOWN: Final = 5  # of the Pods that there are


class Validate(StrEnum):
    """What unknown fields mean, as for kubectl."""

    STRICT = "strict"  # the Job is refused
    WARN = "warn"  # they are named and dropped
    IGNORE = "ignore"  # they are dropped


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--pod", "pod_name", help="Only this Pod.")
@click.option("--env", "show_env", is_flag=True, help="The variables of each container as a table, instead of YAML.")
@click.option(
    "--namespace",
    "-n",
    default="default",
    show_default=True,
    callback=namespace_option,
    help="For Jobs whose YAML names none.",
)
@click.option("--gang-scheduler", type=click.Choice(["none", "volcano"]), default="none", show_default=True)
@click.option(
    "--scheduler-name",
    default="volcano",
    show_default=True,
    callback=scheduler_name_option,
    help="What means the gang scheduler.",
)
@click.option(
    "--validate",
    type=click.Choice([choice.value for choice in Validate]),
    default=Validate.STRICT.value,
    show_default=True,
    help="What unknown fields mean, as for kubectl.",
)
def render(
    file: Any,
    pod_name: str | None,
    show_env: bool,
    namespace: str,
    gang_scheduler: str,
    scheduler_name: str,
    validate: str,
) -> None:
    """Print every object that the operator would make for the Jobs in FILE (YAML or JSON; - for standard input)."""
    # Imported late: these libraries take a moment that `vcjob --help` need not wait for.
    from vcjob.api.crds import KINDS, core_schemas
    from vcjob.api.schema import model_schema
    from vcjob.gang.backends import BACKENDS

    gang = BACKENDS[gang_scheduler](gang_scheduler_name=scheduler_name)
    (kind,) = (kind for kind in KINDS if kind.plural == "jobs")
    schema = model_schema(kind.model, core=core_schemas())
    documents: list[dict[str, Any]] = []
    known: list[str] = []
    were_refused = False
    for raw in _read_jobs(file, namespace):
        try:
            if isinstance(raw, click.ClickException):
                raise raw
            revision = _compile(_decode(raw, schema=schema, validate=Validate(validate)), schema=schema)
            preview = _preview(revision, gang=gang)
        except click.ClickException as error:  # as for kubectl, one bad Job of a file does not keep the others
            error.show()
            were_refused = True
            continue
        known += (pod.name for pod in preview.pods)
        pods = [pod for pod in preview.pods if pod_name in (None, pod.name)]
        for note in dict.fromkeys(note for pod in pods for note in pod.notes):
            click.echo(f"note: {note.message}", err=True)
        if show_env:
            for pod in pods:
                _print_env(pod.manifest, [item.wanted for item in revision.objects])
        else:
            documents += [*(preview.objects if pod_name is None else ()), *(pod.manifest for pod in pods)]
    if documents:
        click.echo(yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=1000), nl=False)
    if pod_name is not None and pod_name not in known and not were_refused:
        shown = ", ".join(known[:NAMES_SHOWN]) + (" …" if len(known) > NAMES_SHOWN else "")
        raise click.ClickException(f"there is no pod '{pod_name}'; the pods: {shown}")
    if were_refused:
        raise click.exceptions.Exit(1)


def _preview(revision: Any, *, gang: Any) -> Any:
    from vcjob.lifecycle.preview import preview_job

    try:
        return preview_job(revision, gang=gang)
    except Exception as error:  # a third-party plugin may raise anything
        raise click.ClickException(f"Job {revision.job.name}: {error}") from error


def _read_jobs(file: Any, namespace: str) -> Iterator[dict[str, Any] | click.ClickException]:
    """Yield the Jobs of a file, and at the end why no more of it can be read, or that there is none."""
    title = Path(getattr(file, "name", "<stdin>")).name
    found = False
    try:
        for document in load_documents(file.read()):
            for item in _items(document):
                if _is_job(item):
                    found = True
                    yield _complete(item, namespace)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: numbers that are none, a key of JSON twice
        yield click.ClickException(f"{title} is no YAML and no JSON: {error}")
    except RecursionError:
        yield click.ClickException(f"{title} is nested too deeply")
    else:
        if not found:
            yield click.ClickException(f"{title} holds no Job of batch.volcano.sh/v1alpha1")


def _is_job(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("kind") == "Job"
        and str(item.get("apiVersion", "")).startswith("batch.volcano.sh/")
    )


def _complete(job: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the Job with the metadata that the API server would give it."""
    from vcjob.lifecycle.preview import NO_UID

    given = job.get("metadata")
    if given is not None and not isinstance(given, dict):
        return job
    # What is null counts as absent, as for the API server.
    metadata = {"namespace": namespace, "uid": NO_UID, **{k: v for k, v in (given or {}).items() if v is not None}}
    if not metadata.get("name") and isinstance(prefix := metadata.get("generateName"), str):
        metadata["name"] = f"{prefix[:PREFIX_MAX]}xxxxx"  # as the API server does it, with five letters by chance
    return {**job, "metadata": metadata}


def _items(document: Any) -> list[Any]:
    """Return the objects of a document, which may be a List of them as kubectl takes it."""
    if not isinstance(document, dict) or document.get("kind") != "List":
        return [document]
    items = document.get("items")
    return [item for part in items for item in _items(part)] if isinstance(items, list) else []


def _decode(raw: dict[str, Any], *, schema: dict[str, Any], validate: Validate) -> dict[str, Any]:
    """Return the Job as the API server would read it."""
    from vcjob.api.strict import decode_strictly

    decoded = decode_strictly(raw, schema=schema)
    refused = (*(decoded.unknown if validate is Validate.STRICT else ()), *decoded.mistyped)
    if refused:
        raise _refusal(raw, *refused)
    for sentence in decoded.unknown if validate is Validate.WARN else ():
        click.echo(f"warning: {sentence}", err=True)
    value: dict[str, Any] = decoded.value
    return value


def _compile(raw: dict[str, Any], *, schema: dict[str, Any]) -> Any:
    from vcjob.admission.defaulting import default_job
    from vcjob.admission.structure import check_structure
    from vcjob.admission.validation import validate_create, warnings
    from vcjob.api.base import InvalidObject
    from vcjob.lifecycle.revision import compile_job

    stored = default_job(raw)
    problems = validate_create(stored)
    # Where both have something to say about a field, admission knows the better words; an entry of a list that stands
    # there twice is told of by its key.
    told = {field for problem in problems for field in (problem.field, problem.field.removesuffix(".name"))}
    by_schema = [problem for problem in check_structure(stored, schema=schema) if problem.field not in told]
    if problems or by_schema:
        raise _refusal(raw, *(str(problem) for problem in (*by_schema, *problems)))
    for sentence in warnings(stored):
        click.echo(f"note: {sentence}", err=True)
    try:
        return compile_job(raw)
    except InvalidObject as error:
        raise click.ClickException(f"Job {_name(raw)}: {error}") from error


def _refusal(raw: dict[str, Any], *sentences: str) -> click.ClickException:
    return click.ClickException("\n  ".join([f"Job {_name(raw)} would be refused:", *sentences]))


def _name(raw: dict[str, Any]) -> str:
    metadata = raw.get("metadata")
    return str(metadata.get("name", "(without a name)") if isinstance(metadata, dict) else "(without a name)")


def _print_env(pod: dict[str, Any], wanted: list[Any]) -> None:
    from vcjob.plugins.preview import visible_env

    spec = pod["spec"]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        click.secho(f"{pod['metadata']['name']} / {container['name']}", bold=True)
        env = visible_env(container, wanted)
        width = max((len(name) for name in env), default=0)
        for name, value in env.items():
            click.echo(f"  {name:<{width}}  {value}")
        if not env:
            click.echo("  (no variables)")

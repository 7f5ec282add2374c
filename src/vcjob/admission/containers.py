"""Containers of a Pod template: the rules of core/v1 that a Job is most often caught by. Pure; never raises.

The API server has the last word on every Pod; here stand the rules that would otherwise be told only after the Job was
accepted. What is not listed is let through.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcjob.api.quantity import InvalidQuantity, Quantity, parse_quantity

from .names import A_LABEL, PORT_MAX, PORT_NAME_MAX, is_dns_label, is_port_name
from .probes import check_probes
from .problem import Problem
from .raw import entries, integer, mapping, text
from .security import check_container_security
from .words import check_lists, check_words

__all__ = ("check_container",)

PORT: Final = {"protocol": ("TCP", "UDP", "SCTP")}
CONTAINER: Final = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}
ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
LISTS: Final = ("env", "ports", "volumeMounts")  # those that plugins add to
HOOKS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")

Container = Mapping[str, Any]


def check_container(
    container: Container, *, field: str, volumes: frozenset[str], is_init: bool, uses_host_network: bool
) -> Iterator[Problem]:
    """Yield what is wrong with one container; `volumes` are the names that it can mount."""
    yield from check_lists(container, LISTS, field=field)
    name = text(container, "name")
    if not name:
        yield Problem(field=f"{field}.name", value=None, message="Required value")
    elif not is_dns_label(name):
        yield Problem(field=f"{field}.name", value=name, message=f"a container's name must be {A_LABEL}")
    image = text(container, "image")
    if not image:
        yield Problem(field=f"{field}.image", value=None, message="Required value")
    elif image != image.strip():
        yield Problem(field=f"{field}.image", value=image, message="must not have leading or trailing whitespace")
    yield from check_words(container, CONTAINER, field=field)
    if is_init and not text(container, "restartPolicy"):
        for hook in HOOKS:
            if container.get(hook):
                message = "may not be set for init containers without restartPolicy=Always"
                yield Problem(field=f"{field}.{hook}", value=None, message=message)
    else:
        yield from check_probes(container, field=field)
    yield from check_container_security(container, field=field)
    yield from _check_ports(container, field=field, uses_host_network=uses_host_network)
    yield from _check_env(container, field=field)
    yield from _check_mounts(container, field=field, volumes=volumes)
    yield from _check_resources(mapping(container, "resources"), field=f"{field}.resources")


def _check_ports(container: Container, *, field: str, uses_host_network: bool) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, port in entries(container, "ports"):
        path = f"{field}.ports[{index}]"
        number = integer(port, "containerPort")
        if number is None or not 0 < number <= PORT_MAX:
            yield Problem(field=f"{path}.containerPort", value=number, message=f"must be between 1 and {PORT_MAX}")
        host_port = integer(port, "hostPort")
        if host_port and not 0 < host_port <= PORT_MAX:
            yield Problem(field=f"{path}.hostPort", value=host_port, message=f"must be between 1 and {PORT_MAX}")
        if host_port and uses_host_network and host_port != number:
            message = "must match `containerPort` when `hostNetwork` is true"
            yield Problem(field=f"{path}.hostPort", value=host_port, message=message)
        yield from check_words(port, PORT, field=path)
        name = text(port, "name")
        if name and not is_port_name(name):
            message = (
                f"must be at most {PORT_NAME_MAX} lower-case letters, digits and single dashes, one letter at least"
            )
            yield Problem(field=f"{path}.name", value=name, message=message)
        if name in seen:
            yield Problem(field=f"{path}.name", value=name, message="Duplicate value")
        if name:
            seen.add(name)


def _check_env(container: Container, *, field: str) -> Iterator[Problem]:
    for index, entry in entries(container, "env"):
        path = f"{field}.env[{index}]"
        name = text(entry, "name")
        if not name:
            yield Problem(field=f"{path}.name", value=None, message="Required value")
        elif "=" in name or not name.isascii() or not name.isprintable():
            message = "a variable's name must be printable ASCII without ="
            yield Problem(field=f"{path}.name", value=name, message=message)
        source = entry.get("valueFrom")
        if not isinstance(source, Mapping):
            continue
        if text(entry, "value"):
            message = "may not be specified when `value` is not empty"
            yield Problem(field=f"{path}.valueFrom", value=None, message=message)
        if len([kind for kind in ENV_SOURCES if source.get(kind) is not None]) > 1:
            message = "may not have more than one field specified at a time"
            yield Problem(field=f"{path}.valueFrom", value=None, message=message)


def _check_mounts(container: Container, *, field: str, volumes: frozenset[str]) -> Iterator[Problem]:
    paths: set[str] = set()
    for index, mount in entries(container, "volumeMounts"):
        where = f"{field}.volumeMounts[{index}]"
        name, path = text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield Problem(field=f"{where}.name", value=None, message="Required value")
        elif name not in volumes:
            message = "Not found: the template has no volume of that name"
            yield Problem(field=f"{where}.name", value=name, message=message)
        if not path:
            yield Problem(field=f"{where}.mountPath", value=None, message="Required value")
        elif path in paths:
            yield Problem(field=f"{where}.mountPath", value=path, message="must be unique")
        paths.add(path)


def _check_resources(resources: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    amounts: dict[str, dict[str, Quantity]] = {"limits": {}, "requests": {}}
    for kind, read in amounts.items():
        for name, value in mapping(resources, kind).items():
            path = f"{field}.{kind}[{name}]"
            try:
                amount = parse_quantity(value)
            except InvalidQuantity as error:
                yield Problem(field=path, value=None, message=str(error))
                continue
            if amount.nano < 0:
                yield Problem(field=path, value=str(value), message="must be greater than or equal to 0")
            if _is_not_shared(str(name)) and not amount.is_whole:
                yield Problem(field=path, value=str(value), message="must be an integer")
            read[str(name)] = amount
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        path = f"{field}.requests"
        if limit is None:
            if _is_not_shared(name) and name not in mapping(resources, "limits"):
                message = f"Limit must be set for non overcommitable resource {name}"
                yield Problem(field=f"{field}.limits", value=None, message=message)
        elif _is_not_shared(name) and request != limit:
            message = f"must be equal to {name} limit of {limit}"
            yield Problem(field=path, value=str(request), message=message)
        elif request > limit:
            message = f"must be less than or equal to {name} limit of {limit}"
            yield Problem(field=path, value=str(request), message=message)


def _is_not_shared(resource: str) -> bool:
    """Whether a node hands the resource out once only: extended resources and huge pages."""
    domain, slash, _ = resource.partition("/")
    return resource.startswith("hugepages-") or (bool(slash) and not domain.endswith("kubernetes.io"))

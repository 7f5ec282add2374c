"""Pod templates of tasks: the rules of core/v1 that a Job is most often caught by. Pure; never raises.

A privileged container is no problem: Pod Security decides.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcjob.api.job import Task
from vcjob.api.quantity import InvalidQuantity, parse_quantity

from .containers import check_container
from .metadata import check_keys
from .names import A_LABEL, A_SUBDOMAIN, is_dns_label, is_dns_subdomain
from .problem import Problem, refused
from .raw import entries, integer, items, mapping, text
from .scheduling import check_scheduling
from .security import check_pod_security
from .words import check_lists, check_words

__all__ = ("check_template",)

POLICIES: Final = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
}
# Sources of a volume that must name an object. Of the others the CRD's schema demands it.
NAMED_SOURCES: Final = {"configMap": "name", "secret": "secretName"}
LISTS: Final = ("containers", "initContainers", "volumes")  # those that plugins add to
LABEL: Final = f"must be {A_LABEL}"
SUBDOMAIN: Final = f"must be {A_SUBDOMAIN}"


def check_template(task: Task, *, index: int) -> Iterator[Problem]:
    """Yield what the API server would refuse in each Pod of the task."""
    field = f"spec.tasks[{index}].template"
    yield from check_keys(mapping(task.template, "metadata"), field=f"{field}.metadata")
    spec = task.pod_spec
    field = f"{field}.spec"
    yield from check_lists(spec, LISTS, field=field)
    if not items(spec, "containers"):
        yield Problem(
            field=f"{field}.containers", value=None, message="Required value: a Pod has at least one container"
        )
    yield from check_words(spec, POLICIES, field=field)
    for name, is_valid, rule in (
        ("hostname", is_dns_label, LABEL),
        ("subdomain", is_dns_label, LABEL),
        ("serviceAccountName", is_dns_subdomain, SUBDOMAIN),
        ("nodeName", is_dns_subdomain, SUBDOMAIN),
        ("priorityClassName", is_dns_subdomain, SUBDOMAIN),
    ):
        if (value := text(spec, name)) and not is_valid(value):
            yield Problem(field=f"{field}.{name}", value=value, message=rule)
    if (seconds := integer(spec, "activeDeadlineSeconds")) is not None and seconds < 1:
        yield Problem(field=f"{field}.activeDeadlineSeconds", value=seconds, message="must be greater than 0")
    if text(spec, "dnsPolicy") == "None" and not items(mapping(spec, "dnsConfig"), "nameservers"):
        message = "Required value: it must have a name server when `dnsPolicy` is None"
        yield Problem(field=f"{field}.dnsConfig.nameservers", value=None, message=message)
    if items(spec, "ephemeralContainers"):
        message = "ephemeral containers not allowed in pod template"
        yield Problem(field=f"{field}.ephemeralContainers", value=None, message=message)
    yield from check_scheduling(spec, field=field)
    yield from check_pod_security(spec, field=field)
    yield from _check_volumes(spec, field=field)
    yield from _check_containers(spec, field=field)
    if task.topology_policy not in ("", "none"):
        yield from _check_whole_cpus(spec, index=index)


def _check_volumes(spec: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, volume in entries(spec, "volumes"):
        path = f"{field}.volumes[{index}]"
        name = text(volume, "name")
        if not name:
            yield Problem(field=f"{path}.name", value=None, message="Required value")
        elif not is_dns_label(name):
            yield Problem(field=f"{path}.name", value=name, message=LABEL)
        elif name in seen:
            yield Problem(field=f"{path}.name", value=name, message="Duplicate value")
        seen.add(name)
        sources = [kind for kind, source in volume.items() if kind != "name" and source is not None]
        if len(sources) > 1:
            message = f"may not specify more than 1 volume type, found {', '.join(map(str, sources))}"
            yield Problem(field=path, value=name, message=message)
        for kind, named in NAMED_SOURCES.items():
            if isinstance(source := volume.get(kind), Mapping) and not text(source, named):
                yield Problem(field=f"{path}.{kind}.{named}", value=None, message="Required value")


def _check_containers(spec: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    volumes = frozenset(text(volume, "name") for _, volume in entries(spec, "volumes"))
    uses_host_network = spec.get("hostNetwork") is True
    names: Counter[str] = Counter()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(mapping(found) for found in items(spec, kind)):
            path = f"{field}.{kind}[{index}]"
            yield from check_container(
                container,
                field=path,
                volumes=volumes,
                is_init=kind == "initContainers",
                uses_host_network=uses_host_network,
            )
            name = text(container, "name")
            names[name] += 1
            if name and names[name] == 2:
                yield Problem(field=f"{path}.name", value=name, message="Duplicate value")


def _check_whole_cpus(spec: Mapping[str, Any], *, index: int) -> Iterator[Problem]:
    """Yield the containers that no NUMA node can be reserved for: those without a whole number of CPUs."""
    for kind in ("initContainers", "containers"):
        for place, container in entries(spec, kind):
            resources = mapping(container, "resources")
            asked = mapping(resources, "requests") or mapping(resources, "limits")
            if not _is_whole(asked.get("cpu")):
                yield refused(
                    f"spec.tasks[{index}].topologyPolicy",
                    None,
                    message=(
                        f"the cpu request isn't an integer in spec.task[{index}] container[{place}]: "
                        f"{text(container, 'name')} of {kind} must ask for a positive whole number of CPUs"
                    ),
                )


def _is_whole(amount: object) -> bool:
    try:
        cpus = parse_quantity(amount)
    except InvalidQuantity:
        return False
    return cpus.nano > 0 and cpus.is_whole

"""Host names of a Job's Pods, and the limits that lists of them meet.

Pure. A Pod is known as `hostname.subdomain`: from the template when it sets them, else Pod name and Job name. A
template with a hostname gives all its Pods one name, which every list holds once.
"""

import re
from typing import Final

from vcjob.api.job import Job, Task

__all__ = (
    "ENV_ENTRY_MAX",
    "OBJECT_DATA_MAX",
    "fits_env",
    "host",
    "host_label",
    "hosts",
    "is_label",
    "subdomain",
    "volume_name",
)

ENV_ENTRY_MAX: Final = 128 * 1024  # bytes; the kernel's limit for `NAME=value` and the closing zero
OBJECT_DATA_MAX: Final = 1024 * 1024  # bytes; the API server's limit for the values of a ConfigMap or Secret
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def host_label(job: Job, *, task: Task, index: int) -> str:
    """Return the hostname of a Pod."""
    return task.pod_spec.get("hostname") or f"{_stem(job, task)}{index}"


def subdomain(job: Job, *, task: Task) -> str:
    """Return the subdomain of a task's Pods."""
    return task.pod_spec.get("subdomain") or job.name


def host(job: Job, *, task: Task, index: int) -> str:
    """Return the name under which the Job's other Pods reach a Pod."""
    return f"{host_label(job, task=task, index=index)}.{subdomain(job, task=task)}"


def hosts(job: Job, *, task: Task) -> tuple[str, ...]:
    """Return the names of a task's Pods in the order of their index, each once."""
    if task.pod_spec.get("hostname"):
        return (host(job, task=task, index=0),) if task.replicas > 0 else ()
    # Spelled out, since a task may have ten thousand.
    stem, domain = _stem(job, task), subdomain(job, task=task)
    return tuple([f"{stem}{index}.{domain}" for index in range(task.replicas)])


def _stem(job: Job, task: Task) -> str:
    return f"{job.name}-{task.name}-"


def fits_env(name: str, value: str) -> bool:
    """Say whether a process can be started with this variable."""
    return len(name) + len(value.encode()) + 2 <= ENV_ENTRY_MAX


def is_label(name: str) -> bool:
    """Say whether a name may be a hostname or a volume name: a DNS label of at most 63 characters."""
    return LABEL.fullmatch(name) is not None


def volume_name(job: Job, suffix: str) -> str:
    """Return the name of a plugin's Pod volume; a Job name too long or dotted for one is replaced."""
    name = f"{job.name}-{suffix}"
    return name if is_label(name) else f"vcjob-{suffix}"

"""Names: which form they must have where. Pure.

The forms are those of Kubernetes: a DNS label names Pods' hosts and containers, a DNS-1035 label (a letter first)
Services, a DNS subdomain most objects, and a qualified name is what a label value may hold.
"""

import re
from collections.abc import Iterator
from typing import Final

from vcjob.api.job import Job, Task

from .problem import Problem, refused

__all__ = (
    "A_LABEL",
    "A_SUBDOMAIN",
    "LABEL_MAX",
    "PORT_MAX",
    "PORT_NAME_MAX",
    "SUBDOMAIN_MAX",
    "check_job_name",
    "check_pod_names",
    "is_dns_label",
    "is_dns_subdomain",
    "is_label_key",
    "is_label_value",
    "is_port_name",
    "is_qualified_name",
)

LABEL_MAX: Final = 63  # characters
SUBDOMAIN_MAX: Final = 253  # characters
PORT_NAME_MAX: Final = 15  # characters
PORT_MAX: Final = 65535
A_LABEL: Final = "a DNS label: at most 63 lower-case letters, digits and dashes"
A_SUBDOMAIN: Final = "a DNS subdomain: lower-case letters, digits, dashes and dots"

DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)


def is_dns_label(name: str) -> bool:
    """Whether a name is a DNS label."""
    return len(name) <= LABEL_MAX and DNS_LABEL.fullmatch(name) is not None


def is_dns_subdomain(name: str) -> bool:
    """Whether a name is a DNS subdomain."""
    return len(name) <= SUBDOMAIN_MAX and DNS_SUBDOMAIN.fullmatch(name) is not None


def is_qualified_name(name: str) -> bool:
    """Whether a name is qualified: at most 63 letters, digits and `-_.`, a letter or digit at both ends."""
    return len(name) <= LABEL_MAX and QUALIFIED.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether a label may have the value."""
    return not value or is_qualified_name(value)


def is_label_key(key: str) -> bool:
    """Whether a label or an annotation may have the key: a qualified name, perhaps behind a domain and a slash."""
    domain, slash, name = key.rpartition("/")
    return is_qualified_name(name) and (not slash or is_dns_subdomain(domain))


def is_port_name(name: str) -> bool:
    """Whether a port may have the name: a short DNS label with a letter and no two dashes together."""
    return (
        len(name) <= PORT_NAME_MAX
        and is_dns_label(name)
        and "--" not in name
        and any(letter.isalpha() for letter in name)
    )


def check_job_name(job: Job) -> Iterator[Problem]:
    """Yield a problem when the Job's name cannot be the value of its Pods' label."""
    if not (is_qualified_name(job.name) and is_dns_subdomain(job.name)):
        yield Problem(
            field="metadata.name",
            value=job.name,
            message=f"the name of a job must be at most {LABEL_MAX} lower-case letters, digits, dashes and dots",
        )


def check_pod_names(job: Job, task: Task, *, index: int) -> Iterator[Problem]:
    """Yield a problem when the longest name of a task's Pods is too long, which is that of the last one."""
    name = f"{job.name}-{task.name}-{max(task.replicas - 1, 0)}"
    # Without a host name of its own a Pod may have a longer name; plugins that give it one say so themselves.
    if len(name) > LABEL_MAX:
        yield refused(
            f"spec.tasks[{index}].name",
            task.name,
            message=(
                f"create pod with name {name} validate failed: it has {len(name)} characters and must have at most "
                f"{LABEL_MAX}; shorten the name of the job or of the task"
            ),
        )

"""Security contexts of Pods and containers, as core/v1 judges them. Pure; never raises.

Whether what they ask for is allowed is the business of Pod Security.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcjob.api.base import INT32_MAX

from .problem import Problem
from .raw import items, mapping, text
from .words import check_words

__all__ = ("check_container_security", "check_pod_security")

POD: Final = {"fsGroupChangePolicy": ("OnRootMismatch", "Always"), "supplementalGroupsPolicy": ("Merge", "Strict")}
PROFILES: Final = {"type": ("RuntimeDefault", "Unconfined", "Localhost")}


def check_pod_security(spec: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with the security context of a Pod's spec."""
    context, field = mapping(spec, "securityContext"), f"{field}.securityContext"
    yield from check_words(context, POD, field=field)
    groups = items(context, "supplementalGroups")
    ids = {f"supplementalGroups[{index}]": group for index, group in enumerate(groups)}
    yield from _check_ids({**context, **ids}, ("runAsUser", "runAsGroup", "fsGroup", *ids), field=field)
    yield from _check_profiles(context, field=field)


def check_container_security(container: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with the security context of a container."""
    context, field = mapping(container, "securityContext"), f"{field}.securityContext"
    yield from _check_ids(context, ("runAsUser", "runAsGroup"), field=field)
    yield from _check_profiles(context, field=field)
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged") is True:
        message = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield Problem(field=field, value=None, message=message)


def _check_ids(context: Mapping[str, Any], names: tuple[str, ...], *, field: str) -> Iterator[Problem]:
    for name in names:
        value = context.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value <= INT32_MAX:
            yield Problem(field=f"{field}.{name}", value=value, message=f"must be between 0 and {INT32_MAX}")


def _check_profiles(context: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    for name in ("seccompProfile", "appArmorProfile"):
        profile, path = mapping(context, name), f"{field}.{name}"
        yield from check_words(profile, PROFILES, field=path)
        if text(profile, "type") == "Localhost" and not text(profile, "localhostProfile"):
            message = "Required value: it must be set when the type is Localhost"
            yield Problem(field=f"{path}.localhostProfile", value=None, message=message)

"""Probes and hooks of a container, as core/v1 judges them. Pure; never raises."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .names import PORT_MAX, PORT_NAME_MAX, is_port_name
from .problem import Problem
from .raw import integer, items, mapping, text
from .words import check_least, check_words

__all__ = ("check_probes",)

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
HOOK_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
WITH_PORT: Final = ("httpGet", "tcpSocket", "grpc")
LEAST: Final = dict.fromkeys(
    ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"), 0
)
SCHEMES: Final = {"scheme": ("HTTP", "HTTPS")}


def check_probes(container: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with the probes and the hooks of one container."""
    for name in PROBES:
        if isinstance(probe := container.get(name), Mapping):
            yield from _check_probe(probe, can_fail=name == "readinessProbe", field=f"{field}.{name}")
    for name in ("postStart", "preStop"):
        if isinstance(hook := mapping(container, "lifecycle").get(name), Mapping):
            yield from _check_handler(hook, HOOK_HANDLERS, field=f"{field}.lifecycle.{name}")


def _check_probe(probe: Mapping[str, Any], *, can_fail: bool, field: str) -> Iterator[Problem]:
    yield from _check_handler(probe, PROBE_HANDLERS, field=field)
    yield from check_least(probe, LEAST, field=field)
    if not can_fail and (successes := integer(probe, "successThreshold") or 1) > 1:
        yield Problem(field=f"{field}.successThreshold", value=successes, message="must be 1")
    seconds = integer(probe, "terminationGracePeriodSeconds")
    if seconds is not None and can_fail:
        message = "must not be set for readinessProbes"
        yield Problem(field=f"{field}.terminationGracePeriodSeconds", value=seconds, message=message)
    elif seconds is not None and seconds < 1:
        yield Problem(field=f"{field}.terminationGracePeriodSeconds", value=seconds, message="must be greater than 0")


def _check_handler(owner: Mapping[str, Any], kinds: tuple[str, ...], *, field: str) -> Iterator[Problem]:
    handlers = [kind for kind in kinds if isinstance(owner.get(kind), Mapping)]
    if len(handlers) != 1:
        message = f"must be exactly one of {', '.join(kinds)}; found: {', '.join(handlers) or 'none'}"
        yield Problem(field=field, value=None, message=message)
    for kind in handlers:
        handler, path = mapping(owner, kind), f"{field}.{kind}"
        if kind == "exec" and not items(handler, "command"):
            yield Problem(field=f"{path}.command", value=None, message="Required value")
        if kind not in WITH_PORT:
            continue
        yield from check_words(handler, SCHEMES, field=path)
        number, name = integer(handler, "port"), text(handler, "port")
        if name and not is_port_name(name):
            message = f"must be a number, or the name of a port: at most {PORT_NAME_MAX} lower-case letters and digits"
            yield Problem(field=f"{path}.port", value=name, message=message)
        elif not name and not 0 < (number or 0) <= PORT_MAX:
            yield Problem(field=f"{path}.port", value=number, message=f"must be between 1 and {PORT_MAX}")

"""Where a Pod may run: node selectors, affinity, tolerations and spread, as core/v1 judges them. Pure; never raises."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .metadata import KEY, check_labels
from .names import is_label_key, is_label_value
from .problem import Problem
from .raw import entries, integer, items, mapping, text
from .words import check_least, check_words

__all__ = ("check_scheduling",)

TOLERATION: Final = {
    "operator": ("Equal", "Exists", "Lt", "Gt"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
SPREAD: Final = {
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
}
# How many values an expression has by its operator: some, none, or one.
SOME: Final = dict.fromkeys(("In", "NotIn"), "some")
SETS: Final = SOME | dict.fromkeys(("Exists", "DoesNotExist"), "none")
NODES: Final = SETS | dict.fromkeys(("Gt", "Lt"), "one")
WEIGHT_MAX: Final = 100
LATER: Final = "DuringSchedulingIgnoredDuringExecution"


def check_scheduling(spec: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with the places that a Pod's spec asks for."""
    yield from check_labels(mapping(spec, "nodeSelector"), field=f"{field}.nodeSelector")
    for index, toleration in entries(spec, "tolerations"):
        yield from _check_toleration(toleration, field=f"{field}.tolerations[{index}]")
    affinity = mapping(spec, "affinity")
    yield from _check_nodes(mapping(affinity, "nodeAffinity"), field=f"{field}.affinity.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _check_pods(mapping(affinity, kind), field=f"{field}.affinity.{kind}")
    yield from _check_spread(spec, field=f"{field}.topologySpreadConstraints")


def _check_toleration(toleration: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    yield from check_words(toleration, TOLERATION, field=field)
    key, operator, value = (text(toleration, name) for name in ("key", "operator", "value"))
    if key and not is_label_key(key):
        yield Problem(field=f"{field}.key", value=key, message=KEY)
    elif not key and operator in ("", "Equal"):
        yield Problem(field=f"{field}.operator", value=operator, message="must be Exists when `key` is empty")
    if operator == "Exists" and value:
        yield Problem(field=f"{field}.value", value=value, message="must be empty when `operator` is Exists")
    elif operator in ("", "Equal") and not is_label_value(value):
        message = "a taint's value must be at most 63 letters, digits and -_."
        yield Problem(field=f"{field}.value", value=value, message=message)
    effect = text(toleration, "effect")
    if integer(toleration, "tolerationSeconds") is not None and effect in ("NoSchedule", "PreferNoSchedule", ""):
        message = "must be NoExecute when `tolerationSeconds` is set"
        yield Problem(field=f"{field}.effect", value=effect, message=message)


def _check_nodes(affinity: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    required = affinity.get(f"required{LATER}")
    if isinstance(required, Mapping):
        path = f"{field}.required{LATER}.nodeSelectorTerms"
        if not items(required, "nodeSelectorTerms"):
            yield Problem(field=path, value=None, message="Required value: it must have at least one term")
        for index, term in entries(required, "nodeSelectorTerms"):
            yield from _check_term(term, field=f"{path}[{index}]")
    for path, preferred in _preferred(affinity, field=field):
        yield from _check_weight(preferred, field=path)
        yield from _check_term(mapping(preferred, "preference"), field=f"{path}.preference")


def _check_term(term: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    yield from _check_expressions(term, "matchExpressions", known=NODES, field=field)
    for index, wanted in entries(term, "matchFields"):
        path = f"{field}.matchFields[{index}]"
        if (key := text(wanted, "key")) != "metadata.name":
            yield Problem(field=f"{path}.key", value=key, message="must be metadata.name, the only field of a node")
        if (operator := text(wanted, "operator")) not in SOME:
            yield _unknown(operator, known=SOME, field=path)
        elif len(items(wanted, "values")) != 1:
            yield Problem(field=f"{path}.values", value=None, message="must be a single value")


def _check_pods(affinity: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    for index, term in entries(affinity, f"required{LATER}"):
        yield from _check_pod_term(term, field=f"{field}.required{LATER}[{index}]")
    for path, preferred in _preferred(affinity, field=field):
        yield from _check_weight(preferred, field=path)
        yield from _check_pod_term(mapping(preferred, "podAffinityTerm"), field=f"{path}.podAffinityTerm")


def _check_pod_term(term: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    for selector in ("labelSelector", "namespaceSelector"):
        yield from _check_selector(mapping(term, selector), field=f"{field}.{selector}")
    yield from _check_topology_key(term, field=field)


def _check_spread(spec: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in entries(spec, "topologySpreadConstraints"):
        path = f"{field}[{index}]"
        if (skew := integer(constraint, "maxSkew")) is None or skew < 1:
            yield Problem(field=f"{path}.maxSkew", value=skew, message="must be greater than 0")
        yield from check_least(constraint, {"minDomains": 1}, field=path)
        yield from _check_topology_key(constraint, field=path)
        yield from check_words(constraint, SPREAD, field=path)
        action = text(constraint, "whenUnsatisfiable")
        if not action:
            yield Problem(field=f"{path}.whenUnsatisfiable", value=None, message="Required value")
        elif action == "ScheduleAnyway" and integer(constraint, "minDomains"):
            message = "can only use minDomains if whenUnsatisfiable is DoNotSchedule"
            yield Problem(field=f"{path}.minDomains", value=None, message=message)
        yield from _check_selector(mapping(constraint, "labelSelector"), field=f"{path}.labelSelector")
        if (pair := (text(constraint, "topologyKey"), action)) in seen:
            yield Problem(field=path, value=", ".join(pair), message="Duplicate value")
        seen.add(pair)


def _check_selector(selector: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    yield from check_labels(mapping(selector, "matchLabels"), field=f"{field}.matchLabels")
    yield from _check_expressions(selector, "matchExpressions", known=SETS, field=field)


def _check_expressions(
    owner: Mapping[str, Any], name: str, *, known: Mapping[str, str], field: str
) -> Iterator[Problem]:
    for index, wanted in entries(owner, name):
        path = f"{field}.{name}[{index}]"
        if not is_label_key(key := text(wanted, "key")):
            yield Problem(field=f"{path}.key", value=key, message=KEY)
        operator, count = text(wanted, "operator"), len(items(wanted, "values"))
        if operator not in known:
            yield _unknown(operator, known=known, field=path)
            continue
        message = {
            "some": "" if count else "must be specified when `operator` is In or NotIn",
            "none": "may not be specified when `operator` is Exists or DoesNotExist" if count else "",
            "one": "" if count == 1 else "must be a single value when `operator` is Gt or Lt",
        }[known[operator]]
        if message:
            yield Problem(field=f"{path}.values", value=None, message=message)


def _unknown(operator: str, *, known: Mapping[str, str], field: str) -> Problem:
    message = f"Unsupported value: it must be one of {', '.join(known)}"
    return Problem(field=f"{field}.operator", value=operator, message=message)


def _preferred(affinity: Mapping[str, Any], *, field: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, preferred in entries(affinity, f"preferred{LATER}"):
        yield f"{field}.preferred{LATER}[{index}]", preferred


def _check_weight(preferred: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    weight = integer(preferred, "weight")
    if weight is None or not 1 <= weight <= WEIGHT_MAX:
        yield Problem(field=f"{field}.weight", value=weight, message=f"must be between 1 and {WEIGHT_MAX}")


def _check_topology_key(term: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    key = text(term, "topologyKey")
    if not key:
        yield Problem(field=f"{field}.topologyKey", value=None, message="Required value: it must name a label of nodes")
    elif not is_label_key(key):
        yield Problem(field=f"{field}.topologyKey", value=key, message=KEY)

"""Comparison of a Job's objects with recorded ones, field by field.

A recording holds what another controller made of the same Job, without what differs from run to run. What was found is
brought into the same form: names that are drawn at random, keys and UIDs become words in angle brackets.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ("differences", "normalised")

Object = dict[str, Any]

# Fields that the API server fills in by itself, or that tell of a moment.
_DROPPED: Final = frozenset(
    (
        "apiVersion",
        "clusterIPs",
        "creationTimestamp",
        "generation",
        "internalTrafficPolicy",
        "ipFamilies",
        "ipFamilyPolicy",
        "kind",
        "lastProbeTime",
        "lastTransitionTime",
        "managedFields",
        "observedGeneration",
        "qosClass",
        "resourceVersion",
        "runningDuration",
        "selfLink",
        "sessionAffinity",
    )
)
_JOB_STATUS: Final = (
    "minAvailable",
    "pending",
    "running",
    "succeeded",
    "failed",
    "taskStatusCount",
    "controlledResources",
)
_USERS_OWN_KEYS: Final = frozenset(("data", "labels", "annotations", "matchLabels", "selector"))
_SSH_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys")
_DRAWN: Final = re.compile(r"\b([a-z0-9.-]+?)-(pvc-)?([0-9a-z]{12})$")


def normalised(objects: dict[str, dict[str, Object]], *, namespace: str) -> Any:
    """Return the objects (by plural and name) in the form of a recording."""
    jobs = list(objects["jobs"].values())
    words = {namespace: "<ns>"} | ({jobs[0]["metadata"]["uid"]: "<job-uid>"} if jobs else {})
    found = _walk(objects, words=words, path=())
    text = json.dumps(found)
    for claim in found["persistentvolumeclaims"]:
        text = text.replace(claim, _DRAWN.sub(r"\1-\2<random>", claim))
    found = json.loads(text)
    for pod in found["pods"].values():
        _name_volumes_by_claim(pod["spec"])
    for plural in ("pods", "podgroups", "persistentvolumeclaims", "services", "networkpolicies"):
        for item in found[plural].values():
            item.pop("status", None)
    for job in found["jobs"].values():
        status = job.pop("status", {})
        job["status"] = {name: value for name, value in status.items() if name in _JOB_STATUS}
        job["status"]["phase"] = status.get("state", {}).get("phase")
        job["metadata"].pop("annotations", None)
    return found


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place where something else was found; the order of named entries is free."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            if key not in found:
                yield f"{path}/{key}: missing, {_short(wanted[key])} was wanted"
            elif key not in wanted:
                yield f"{path}/{key}: {_short(found[key])} was not wanted"
            else:
                yield from differences(wanted[key], found[key], f"{path}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        by_name = _by_name(wanted), _by_name(found)
        if None not in by_name:
            yield from differences(*by_name, path)
        elif len(wanted) != len(found):
            yield f"{path}: {len(found)} entries, {len(wanted)} were wanted: {_short(found)}"
        else:
            for index, pair in enumerate(zip(wanted, found, strict=True)):
                yield from differences(*pair, f"{path}[{index}]")
    elif wanted != found:
        yield f"{path}: {_short(found)}, {_short(wanted)} was wanted"


def _walk(value: Any, *, words: dict[str, str], path: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_walk(item, words=words, path=path) for item in value]
    if isinstance(value, str):
        return _reworded(value, words)
    if not isinstance(value, dict):
        return value
    here = path[-1] if path else ""
    found = {}
    for key, item in value.items():
        if here not in _USERS_OWN_KEYS:
            owner = "ownerReferences" in path
            if (key in _DROPPED and not (owner and key in ("kind", "apiVersion"))) or (key == "uid" and not owner):
                continue
            if key == "clusterIP" and item != "None":
                continue
            if key == "uid":
                found[key] = "<uid>"
                continue
        if here == "data" and "secrets" in path:
            found[key] = _reworded(_decoded(key, item), words)
        else:
            found[_reworded(key, words)] = _walk(item, words=words, path=(*path, key))
    return found


def _decoded(key: str, value: str) -> str:
    """Return an entry of a Secret; of a key no more than what kind it is."""
    text = base64.b64decode(value).decode(errors="replace")
    if key not in _SSH_FILES or len(text) <= 20:
        return text
    return f"<{text.splitlines()[0] if key == 'id_rsa' else text.split()[0]}>"


def _reworded(text: str, words: dict[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def _name_volumes_by_claim(spec: Object) -> None:
    for volume in spec.get("volumes", ()):
        if "persistentVolumeClaim" not in volume:
            continue
        old, volume["name"] = volume["name"], f"<volume:{volume['persistentVolumeClaim']['claimName']}>"
        for container in [*spec.get("containers", ()), *spec.get("initContainers", ())]:
            for mount in container.get("volumeMounts", ()):
                if mount["name"] == old:
                    mount["name"] = volume["name"]


def _by_name(entries: list[Any]) -> dict[str, Any] | None:
    """Return the entries by their names; None when they do not all have one of their own."""
    if not all(isinstance(entry, dict) and "name" in entry for entry in entries):
        return None
    named = {entry["name"]: entry for entry in entries}
    return named if len(named) == len(entries) else None


def _short(value: Any) -> str:
    return json.dumps(value)[:160]

"""Claims of a Job and their mounts. Pure.

A generated claim name is a function of the Job's UID and the volume's place, and is recorded in the spec before the
claim is made: neither a crash nor a repetition can make a second claim.
"""

import hashlib
import string
from typing import Any, Final

from vcjob.api.job import Job
from vcjob.plugins.base import PodDraft

__all__ = ("claim_name", "mount_claims", "volume_name")

_DIGITS: Final = string.digits + string.ascii_lowercase
_SUFFIX_LENGTH: Final = 12
_LABEL_MAX: Final = 63


def claim_name(job: Job, index: int) -> str:
    """Return the name of the claim for `spec.volumes[index]`: the recorded one, else `<job>-pvc-<12 of 0-9a-z>`."""
    volume = job.spec.volumes[index]
    return volume.volume_claim_name or f"{job.name}-pvc-{_suffix(f'{job.uid}/{index}')}"


def volume_name(job: Job, claim: str) -> str:
    """Return the Pod volume's name for a claim: a DNS label, the same in every Pod."""
    return (
        f"{job.name[: _LABEL_MAX - _SUFFIX_LENGTH - 1].rstrip('-.').replace('.', '-')}-{_suffix(f'{job.uid}/{claim}')}"
    )


def mount_claims(job: Job, pod: PodDraft) -> None:
    """Add every claim once as a volume, and mount it at each of its paths in the app containers."""
    seen: set[str] = set()
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for index, volume in enumerate(job.spec.volumes):
        claim = claim_name(job, index)
        name = volume_name(job, claim)
        if claim not in seen:
            seen.add(claim)
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": volume.mount_path})
    if not volumes:
        return
    pod.spec["volumes"] = [*(pod.spec.get("volumes") or ()), *volumes]
    for container in pod.containers:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), *mounts]


def _suffix(seed: str) -> str:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:12], "big")
    out = ""
    for _ in range(_SUFFIX_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        out += _DIGITS[digit]
    return out

"""The claims in `spec.volumes`. Pure.

Only the first problem is told, as in Volcano. Some things are asked of a new Job only: in one that lives, the operator
has filled in the name of a claim beside it, and somebody else may have made what the API server would not take.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vcjob.api.job import Job, Volume
from vcjob.api.quantity import InvalidQuantity, parse_quantity

from .names import A_SUBDOMAIN, is_dns_subdomain
from .problem import Problem, refused
from .raw import entries, items, mapping, text

__all__ = ("check_claims", "check_claims_are_new", "check_mounts")

ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Filesystem", "Block")


def check_claims(volumes: Sequence[Volume]) -> Iterator[Problem]:
    """Yield the first problem of the Job's claims."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        field = f"spec.volumes[{index}]"
        if not volume.mount_path:
            yield Problem(field=f"{field}.mountPath", value=None, message="mountPath is required")
            return
        if volume.mount_path in seen:
            message = f"duplicated mountPath: {volume.mount_path}"
            yield Problem(field=f"{field}.mountPath", value=volume.mount_path, message=message)
            return
        seen.add(volume.mount_path)
        if volume.volume_claim is None and not volume.volume_claim_name:
            message = "either VolumeClaim or VolumeClaimName must be specified"
            yield Problem(field=field, value=None, message=message)
            return
        if volume.volume_claim_name and not is_dns_subdomain(volume.volume_claim_name):
            message = f"a claim's name must be {A_SUBDOMAIN}"
            yield Problem(field=f"{field}.volumeClaimName", value=volume.volume_claim_name, message=message)
            return


def check_claims_are_new(volumes: Sequence[Volume]) -> Iterator[Problem]:
    """Yield the first problem that only the claims of a new Job must not have."""
    for index, volume in enumerate(volumes):
        if volume.volume_claim is not None and volume.volume_claim_name:
            yield refused(
                f"spec.volumes[{index}]",
                volume.volume_claim_name,
                message="conflict: give volumeClaimName for an existing claim or volumeClaim for a new one, not both",
            )
            return
        if volume.volume_claim is not None:
            for problem in _claim_problems(volume.volume_claim, field=f"spec.volumes[{index}].volumeClaim"):
                yield problem
                return


def check_mounts(job: Job) -> Iterator[Problem]:
    """Yield a problem for each path that a container mounts already; no Pod could be made."""
    paths = {volume.mount_path: index for index, volume in enumerate(job.spec.volumes)}
    for task in job.spec.tasks if paths else ():
        for _, container in entries(task.pod_spec, "containers"):
            for _, mount in entries(container, "volumeMounts"):
                if (path := text(mount, "mountPath")) in paths:
                    message = f"container {text(container, 'name')} of task {task.name} mounts something there already"
                    yield Problem(field=f"spec.volumes[{paths[path]}].mountPath", value=path, message=message)


def _claim_problems(claim: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what the API server would refuse when the claim is made."""
    modes = items(claim, "accessModes")
    if not modes:
        message = f"Required value: at least one of {', '.join(ACCESS_MODES)}"
        yield refused(f"{field}.accessModes", None, message=message)
    for index, mode in enumerate(modes):
        if mode not in ACCESS_MODES:
            message = f"Unsupported value: it must be one of {', '.join(ACCESS_MODES)}"
            yield refused(f"{field}.accessModes[{index}]", str(mode), message=message)
    if ACCESS_MODES[-1] in modes and len(set(map(str, modes))) > 1:
        message = f"may not use {ACCESS_MODES[-1]} with other access modes"
        yield refused(f"{field}.accessModes", None, message=message)
    if (mode := claim.get("volumeMode")) is not None and mode not in VOLUME_MODES:
        message = f"Unsupported value: it must be one of {', '.join(VOLUME_MODES)}"
        yield refused(f"{field}.volumeMode", str(mode), message=message)
    if (name := text(claim, "storageClassName")) and not is_dns_subdomain(name):
        yield refused(f"{field}.storageClassName", name, message=f"must be {A_SUBDOMAIN}")
    yield from _storage_problems(mapping(claim, "resources", "requests"), field=f"{field}.resources.requests")


def _storage_problems(requests: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    amount = requests.get("storage")
    if amount is None:
        yield refused(f"{field}[storage]", None, message="Required value: how much the claim asks for, such as 10Gi")
        return
    try:
        if parse_quantity(amount).nano <= 0:
            yield refused(f"{field}[storage]", str(amount), message="must be greater than zero")
    except InvalidQuantity as error:
        yield refused(f"{field}[storage]", None, message=str(error))

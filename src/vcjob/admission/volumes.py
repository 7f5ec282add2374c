"""The claims in `spec.volumes`. Pure.

Only the first problem is told, as in Volcano. A claim together with a claim name is a conflict in a new Job only: in
one that lives, the operator has filled in the name.
"""

from collections.abc import Iterator, Sequence

from vcjob.api.job import Job, Volume

from .names import is_dns_subdomain
from .problem import Problem, refused
from .raw import entries, text

__all__ = ("check_claims", "check_claims_are_new", "check_mounts")


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
            message = "a claim's name must be a DNS subdomain: lower-case letters, digits, dashes and dots"
            yield Problem(field=f"{field}.volumeClaimName", value=volume.volume_claim_name, message=message)
            return


def check_claims_are_new(volumes: Sequence[Volume]) -> Iterator[Problem]:
    """Yield a problem for the first volume that has a claim and the name of one."""
    for index, volume in enumerate(volumes):
        if volume.volume_claim is not None and volume.volume_claim_name:
            yield refused(
                f"spec.volumes[{index}]",
                volume.volume_claim_name,
                message="conflict: give volumeClaimName for an existing claim or volumeClaim for a new one, not both",
            )
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

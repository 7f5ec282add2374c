"""The Job of `batch.volcano.sh/v1alpha1` as a model. Pure.

Templates and claims stay plain dictionaries. Zero and absent mean the same where Volcano's Go types cannot tell them
apart (`minAvailable`, `maxRetry`); the properties of `JobSpec` and `Task` give the effective numbers, so that a Job
that no webhook has defaulted behaves as if one had.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from .base import Model, ObjectMeta
from .names import DEFAULT_QUEUE

__all__ = (
    "DEFAULT_MAX_RETRY",
    "Action",
    "DependsOn",
    "Event",
    "Job",
    "JobSpec",
    "LifecyclePolicy",
    "NetworkTopology",
    "PartitionPolicy",
    "Phase",
    "Task",
    "Volume",
)

DEFAULT_MAX_RETRY: Final = 3
DNS_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def _null_as(default: Any) -> BeforeValidator:
    return BeforeValidator(lambda value: default if value is None else value)


Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Count = Annotated[int, _null_as(0), Field(ge=0, lt=2**31)]


class Phase(StrEnum):
    """`status.state.phase` of a Job."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    FAILED = "Failed"

    @property
    def is_finished(self) -> bool:
        """Whether nothing can ever start the Job again."""
        return self in (Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED)


class Action(StrEnum):
    """What a lifecycle policy or a Command can ask for."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class Event(StrEnum):
    """What a lifecycle policy can react to."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UPDATED = "JobUpdated"  # accepted by admission, never produced


class LifecyclePolicy(Model):
    """When `event` (or one of `events`, or `exitCode`) happens, do `action`, after `timeout` when given."""

    action: str = Field("", description="What to do.")
    event: str = Field("", description="What it reacts to.")
    events: Annotated[tuple[str, ...], _null_as(())] = Field((), description="Several events with one action.")
    exit_code: Int32 | None = Field(None, description="React to a container that ended with this code instead.")
    timeout: str | None = Field(None, description="Wait so long, and act only if the cause is still there.")


class NetworkTopology(Model):
    """How near to each other the members of a group must be placed."""

    mode: str = Field("hard", description="`hard`: required; `soft`: preferred.")
    highest_tier_allowed: Count | None = None
    highest_tier_name: str = ""


class PartitionPolicy(Model):
    """Cut a task's replicas into partitions of equal size that are scheduled and restarted together."""

    total_partitions: Int32
    partition_size: Int32
    min_partitions: Count = 0
    network_topology: NetworkTopology | None = None


class DependsOn(Model):
    """Tasks that must be ready before this one's Pods are made."""

    name: Annotated[tuple[str, ...], _null_as(())] = ()
    iteration: str = ""


class Task(Model):
    """One role of a Job: `replicas` Pods from one template."""

    name: str = ""
    replicas: Count = 0
    min_available: Count | None = None
    template: Annotated[dict[str, Any], _null_as({})] = Field(default_factory=dict)
    policies: Annotated[tuple[LifecyclePolicy, ...], _null_as(())] = ()
    topology_policy: str = ""
    max_retry: Int32 = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None

    @property
    def pod_spec(self) -> dict[str, Any]:
        """Return the template's Pod spec (shared, never to be changed); empty when there is none."""
        spec = self.template.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def effective_min_available(self) -> int:
        """Return how many Pods the task needs: `minAvailable`, else its least partitions, else all replicas."""
        if self.min_available is not None:
            return self.min_available
        if (partition := self.partition_policy) and partition.min_partitions > 0:
            return partition.min_partitions * partition.partition_size
        return self.replicas

    @property
    def effective_max_retry(self) -> int:
        """Return the container restarts after which the task counts as failed; negative means never."""
        return self.max_retry or DEFAULT_MAX_RETRY


class Volume(Model):
    """A claim that every container of the Job mounts."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: dict[str, Any] | None = None


class JobSpec(Model):
    """`spec` of a Job."""

    scheduler_name: str = ""
    min_available: Count = 0
    volumes: Annotated[tuple[Volume, ...], _null_as(())] = ()
    tasks: Annotated[tuple[Task, ...], _null_as(())] = ()
    policies: Annotated[tuple[LifecyclePolicy, ...], _null_as(())] = ()
    plugins: Annotated[dict[str, Annotated[tuple[str, ...], _null_as(())]], _null_as({})] = Field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    max_retry: Count = DEFAULT_MAX_RETRY
    ttl_seconds_after_finished: Count | None = None
    priority_class_name: str = ""
    min_success: Count | None = None
    network_topology: NetworkTopology | None = None
    running_estimate: str | None = None

    @property
    def effective_max_retry(self) -> int:
        """Return after how many restarts the Job fails."""
        return self.max_retry or DEFAULT_MAX_RETRY

    @property
    def total_replicas(self) -> int:
        """Return the number of Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)


class Job(Model):
    """A Job without its status, which the lifecycle reads by its own rules."""

    api_version: Literal["batch.volcano.sh/v1alpha1"] = "batch.volcano.sh/v1alpha1"
    metadata: ObjectMeta
    spec: JobSpec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    def task(self, name: str) -> Task | None:
        """Return the task of that name."""
        return next((task for task in self.spec.tasks if task.name == name), None)

    def owner_reference(self) -> dict[str, Any]:
        """Return the controller reference that every object of the Job carries (garbage collection by UID)."""
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

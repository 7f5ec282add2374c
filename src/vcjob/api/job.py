"""The Job of `batch.volcano.sh/v1alpha1` as a model. Pure.

Templates and claims stay plain dictionaries. Zero and absent mean the same where Volcano's Go types cannot tell them
apart (`minAvailable`, `maxRetry`); the properties of `JobSpec` and `Task` give the effective numbers, so that a Job
that no webhook has defaulted behaves as if one had.
"""

from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from .base import DNS_LABEL, DNS_NAME, Count, Int32, Model, ObjectMeta, null_as
from .duration import DURATION_PATTERN
from .names import DEFAULT_QUEUE
from .policy import Action, Event, LifecyclePolicy
from .topology import NetworkTopology

__all__ = (
    "DEFAULT_MAX_RETRY",
    "PODS_MAX",
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
# As many as a whole cluster may hold, by Kubernetes' own limits. Beyond it a Job can never run, and whoever walked over
# its Pods, of which there could be two billion, would stand still.
PODS_MAX: Final = 150_000

PodTemplate = Annotated[dict[str, Any], null_as({}), WithJsonSchema({"x-core": "io.k8s.api.core.v1.PodTemplateSpec"})]
ClaimSpec = Annotated[dict[str, Any], WithJsonSchema({"x-core": "io.k8s.api.core.v1.PersistentVolumeClaimSpec"})]
Arguments = Annotated[
    tuple[str, ...], null_as(()), WithJsonSchema({"type": "array", "items": {"type": "string"}, "nullable": True})
]
Text = Annotated[str, null_as("")]


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


class PartitionPolicy(Model):
    """Cut a task's replicas into partitions of equal size that are scheduled and restarted together."""

    total_partitions: Int32 = Field(
        description="How many partitions; replicas must be totalPartitions x partitionSize.",
        json_schema_extra={"minimum": 1},
    )
    partition_size: Int32 = Field(description="Pods in each partition.", json_schema_extra={"minimum": 1})
    min_partitions: Count = Field(
        0, description="Partitions that must be placed at least.", json_schema_extra={"x-default": 0}
    )
    network_topology: NetworkTopology | None = Field(
        None, description="How near to each other the Pods of one partition run."
    )


class DependsOn(Model):
    """Tasks that must be ready before this one's Pods are made."""

    name: Annotated[tuple[str, ...], null_as(())] = Field((), description="Names of tasks of this Job.")
    iteration: Text = Field(
        "", description="all (the default): every task of the list must be ready; any: one of several is enough."
    )


class Task(Model):
    """One role of a Job: `replicas` Pods from one template."""

    name: Text = Field(
        "",
        description="Name of the task, part of its Pods' names; default<index> when empty.",
        json_schema_extra={"maxLength": 63, "pattern": DNS_LABEL},
    )
    replicas: Count = Field(0, description="How many Pods: <job>-<task>-0 and so on.")
    min_available: Count | None = Field(
        None,
        description="How many Pods of the task must be placed at least; minPartitions x partitionSize, else replicas, "
        "when absent.",
    )
    template: PodTemplate = Field(
        default_factory=dict, description="What each Pod of the task looks like, as in a Deployment."
    )
    policies: Annotated[tuple[LifecyclePolicy, ...], null_as(())] = Field(
        (),
        description="What to do when something happens to the task's Pods; they go before those of the Job.",
    )
    topology_policy: Text = Field(
        "",
        description="NUMA policy for the task's Pods. Other than none, each CPU request must be a whole number.",
        json_schema_extra={"enum": ["none", "best-effort", "restricted", "single-numa-node"]},
    )
    max_retry: Int32 = Field(
        0,
        description="Container restarts after which the task counts as failed; 3 when 0 or absent.",
        json_schema_extra={"minimum": 0},
    )
    depends_on: DependsOn | None = Field(None, description="Tasks that must be ready before this one's Pods are made.")
    partition_policy: PartitionPolicy | None = Field(
        None, description="Cut the replicas into partitions of equal size that are scheduled and restarted together."
    )

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

    model_config = ConfigDict(json_schema_extra={"required": ["mountPath"]})

    mount_path: Text = Field(
        "",
        description="Where every container mounts it; not empty, no colon, not twice.",
        json_schema_extra={"minLength": 1, "pattern": "^[^:]+$"},
    )
    volume_claim_name: Text = Field(
        "",
        description="An existing claim; generated when volumeClaim is given instead.",
        json_schema_extra={"maxLength": 253},
    )
    volume_claim: ClaimSpec | None = Field(None, description="A claim to be created for the Job and deleted with it.")


class JobSpec(Model):
    """`spec` of a Job."""

    scheduler_name: Text = Field(
        "",
        description="Scheduler of the Pods whose template names none; volcano when empty.",
        json_schema_extra={"maxLength": 63},
    )
    min_available: Count = Field(
        0, description="How many Pods of all tasks must be placed together; the sum of the tasks' when 0 or absent."
    )
    volumes: Annotated[tuple[Volume, ...], null_as(())] = Field(
        (), description="Claims that every container of the Job mounts."
    )
    tasks: Annotated[tuple[Task, ...], null_as(())] = Field(
        (),
        description="The roles of the Job, each with its own Pods.",
        json_schema_extra={"minItems": 1, "maxItems": 20_000},
    )
    policies: Annotated[tuple[LifecyclePolicy, ...], null_as(())] = Field(
        (),
        description="What to do when something happens to a Pod or task; those of the task go before.",
    )
    plugins: Annotated[dict[str, Arguments], null_as({})] = Field(
        default_factory=dict,
        description="Plugins by name with their arguments: env, svc, ssh, tensorflow, pytorch, mpi, ray, hcclrank.",
    )
    queue: Text = Field(
        DEFAULT_QUEUE,
        description="The queue that the Job waits in.",
        json_schema_extra={"x-default": DEFAULT_QUEUE, "pattern": DNS_NAME, "maxLength": 253},
    )
    max_retry: Count = Field(
        DEFAULT_MAX_RETRY,
        description="After how many restarts the Job fails.",
        json_schema_extra={"x-default": DEFAULT_MAX_RETRY},
    )
    ttl_seconds_after_finished: Count | None = Field(
        None, description="Seconds after its end when the Job is deleted; never when absent."
    )
    priority_class_name: Text = Field(
        "",
        description="PriorityClass of the Job and of the Pods whose template names none.",
        json_schema_extra={"pattern": DNS_NAME, "maxLength": 253},
    )
    min_success: Count | None = Field(
        None,
        description="The Job is complete when so many Pods have succeeded.",
        json_schema_extra={"minimum": 1},
    )
    network_topology: NetworkTopology | None = Field(
        None, description="How near to each other in the network all Pods of the Job run."
    )
    running_estimate: str | None = Field(
        None,
        description="How long the Job is thought to run, for the scheduler.",
        json_schema_extra={"pattern": DURATION_PATTERN},
    )

    @model_validator(mode="after")
    def _is_of_a_possible_size(self) -> Self:
        if self.total_replicas > PODS_MAX:
            facts = {"total": self.total_replicas, "limit": PODS_MAX}
            raise PydanticCustomError("too_many_pods", "{total} Pods in all tasks; a Job has {limit} at most", facts)
        return self

    @property
    def effective_max_retry(self) -> int:
        """Return after how many restarts the Job fails."""
        return self.max_retry or DEFAULT_MAX_RETRY

    @cached_property
    def total_replicas(self) -> int:
        """Return the number of Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)


class Job(Model):
    """A gang of Pods made of tasks, without its status, which the lifecycle reads by its own rules."""

    api_version: Literal["batch.volcano.sh/v1alpha1"] = "batch.volcano.sh/v1alpha1"
    metadata: ObjectMeta
    spec: JobSpec = Field(description="What the Job is made of.")

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

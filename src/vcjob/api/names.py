"""The fixed words of the API: groups, kinds, label and annotation keys.

Pure constants. Keys and values are Volcano's own, because the Volcano scheduler and its users' tools read them; the few
keys that only this operator uses carry the prefix `vcjob/`.
"""

from typing import Final

__all__ = (
    "ANNOTATION_COOLDOWN_TIME",
    "ANNOTATION_EVICTED_AT",
    "ANNOTATION_GROUP_NAME",
    "ANNOTATION_HIERARCHY",
    "ANNOTATION_HIERARCHY_WEIGHTS",
    "ANNOTATION_JDB_MAX_UNAVAILABLE",
    "ANNOTATION_JDB_MIN_AVAILABLE",
    "ANNOTATION_JOB_FORWARDING",
    "ANNOTATION_JOB_RETRY_COUNT",
    "ANNOTATION_JOB_VERSION",
    "ANNOTATION_NAMESPACE_QUEUE",
    "ANNOTATION_NUMA_POLICY",
    "ANNOTATION_OUT_OF_SYNC",
    "ANNOTATION_PREEMPTABLE",
    "ANNOTATION_REVOCABLE_ZONE",
    "ANNOTATION_TEMPLATE_UID",
    "BATCH_API_VERSION",
    "BATCH_GROUP",
    "BUS_API_VERSION",
    "BUS_GROUP",
    "COMMAND_KIND",
    "DEFAULT_QUEUE",
    "DEFAULT_SCHEDULER",
    "JOB_KIND",
    "LABEL_JOB_NAME",
    "LABEL_JOB_NAMESPACE",
    "LABEL_PARTITION_ID",
    "LABEL_QUEUE_NAME",
    "LABEL_TASK_INDEX",
    "LABEL_TASK_SPEC",
    "SCHEDULING_API_VERSION",
    "SCHEDULING_GROUP",
)

BATCH_GROUP: Final = "batch.volcano.sh"
BATCH_API_VERSION: Final = "batch.volcano.sh/v1alpha1"
BUS_GROUP: Final = "bus.volcano.sh"
BUS_API_VERSION: Final = "bus.volcano.sh/v1alpha1"
SCHEDULING_GROUP: Final = "scheduling.volcano.sh"
SCHEDULING_API_VERSION: Final = "scheduling.volcano.sh/v1beta1"
JOB_KIND: Final = "Job"
COMMAND_KIND: Final = "Command"

DEFAULT_QUEUE: Final = "default"
DEFAULT_SCHEDULER: Final = "volcano"

# On Pods both as label and as annotation.
LABEL_JOB_NAME: Final = "volcano.sh/job-name"
LABEL_TASK_SPEC: Final = "volcano.sh/task-spec"
LABEL_TASK_INDEX: Final = "volcano.sh/task-index"
LABEL_QUEUE_NAME: Final = "volcano.sh/queue-name"
# On Pods as label only.
LABEL_JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
LABEL_PARTITION_ID: Final = "volcano.sh/partition-id"

ANNOTATION_GROUP_NAME: Final = "scheduling.k8s.io/group-name"
ANNOTATION_JOB_VERSION: Final = "volcano.sh/job-version"
ANNOTATION_JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
ANNOTATION_TEMPLATE_UID: Final = "volcano.sh/template-uid"
ANNOTATION_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
ANNOTATION_NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
ANNOTATION_PREEMPTABLE: Final = "volcano.sh/preemptable"
ANNOTATION_COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
ANNOTATION_REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
ANNOTATION_JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
ANNOTATION_JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
ANNOTATION_JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
# On Queues: the path of names from the root, and the weight at each of them.
ANNOTATION_HIERARCHY: Final = "volcano.sh/hierarchy"
ANNOTATION_HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
# On Namespaces: the Queue of PodGroups that name none.
ANNOTATION_NAMESPACE_QUEUE: Final = "scheduling.volcano.sh/queue-name"

# Ours: on the Pod that replaces an evicted one, so that a delayed PodEvicted policy survives a restart of the operator.
ANNOTATION_EVICTED_AT: Final = "vcjob/evicted-at"

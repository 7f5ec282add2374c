"""CEL rules of the CRDs, by the model that they are for. Pure data.

They keep the cluster safe where no webhook runs, so they say only what admission says too, and never what a Job that
lives already may break: the operator itself fills in volumeClaimName beside volumeClaim, and a Job may be scaled to
nothing. Rules that would have to compare every task with every other are left to admission and to the operator: the
API server refuses a CRD whose rules might cost too much. So is a change of a Pod template: CEL compares literally, and
the empty objects that webhooks and typed clients write into a template would be changes.
"""

from typing import Any, Final

from .policy import VALID_ACTIONS, VALID_EVENTS, Action

__all__ = ("RULES",)

Rule = dict[str, Any]

_ACTIONS: Final = ", ".join(f"'{action}'" for action in Action)
_EVENTS: Final = "(has(self.event) || has(self.events) && self.events.size() > 0)"
_TOTAL: Final = "self.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()"
_BOTH_CLAIMS: Final = "has(v.volumeClaim) && has(v.volumeClaimName) && v.volumeClaimName != ''"
_IMMUTABLE: Final = (
    "job updates may not change fields other than "
    "`minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`"
)

RULES: Final[dict[str, list[Rule]]] = {
    "JobSpec": [
        {"rule": "has(self.tasks) && self.tasks.size() > 0", "message": "No task specified in job spec"},
        {
            "rule": f"!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= {_TOTAL}",
            "message": "job 'minAvailable' should not be greater than total replicas in tasks",
            "fieldPath": ".minAvailable",
        },
        {
            "rule": f"oldSelf.hasValue() || !has(self.volumes) || !self.volumes.exists(v, {_BOTH_CLAIMS})",
            "optionalOldSelf": True,
            "message": "conflict: give volumeClaimName for an existing claim or volumeClaim for a new one, not both",
            "fieldPath": ".volumes",
        },
        {
            "rule": "!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() == oldSelf.tasks.size()",
            "message": "job updates may not add or remove tasks",
            "fieldPath": ".tasks",
        },
        {"rule": "self.queue == oldSelf.queue", "message": f"{_IMMUTABLE}: queue", "fieldPath": ".queue"},
        {
            "rule": (
                "has(self.plugins) == has(oldSelf.plugins) && (!has(self.plugins) || self.plugins == oldSelf.plugins)"
            ),
            "message": f"{_IMMUTABLE}: plugins",
            "fieldPath": ".plugins",
        },
    ],
    "Task": [
        {
            "rule": "!has(self.minAvailable) || self.minAvailable <= (has(self.replicas) ? self.replicas : 0)",
            "message": "'minAvailable' is greater than 'replicas' in task",
            "messageExpression": (
                "\"'minAvailable' is greater than 'replicas' in task: \" + (has(self.name) ? self.name : '') + "
                "'; one that was left out was filled in with the replicas of then, so lower both'"
            ),
            "fieldPath": ".minAvailable",
        },
        {
            "rule": (
                "!has(self.partitionPolicy) || (has(self.replicas) ? self.replicas : 0) == "
                "self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize"
            ),
            "message": "replicas must be totalPartitions x partitionSize of the task's partitionPolicy",
            "fieldPath": ".replicas",
        },
    ],
    "LifecyclePolicy": [
        {
            "rule": f"!has(self.exitCode) || !{_EVENTS}",
            "message": "must not specify event and exitCode simultaneously",
        },
        {
            "rule": f"has(self.exitCode) || {_EVENTS}",
            "message": f"either event and exitCode should be specified; {VALID_EVENTS}",
        },
        {
            "rule": "!has(self.exitCode) || self.exitCode != 0",
            "message": "0 is not a valid error code",
            "fieldPath": ".exitCode",
        },
        {
            "rule": f"self.action in [{_ACTIONS}]",
            "message": f"invalid policy action; {VALID_ACTIONS}",
            "fieldPath": ".action",
        },
    ],
    "Volume": [
        {
            "rule": "has(self.volumeClaim) || has(self.volumeClaimName) && self.volumeClaimName != ''",
            "message": "either VolumeClaim or VolumeClaimName must be specified",
        },
    ],
    "NetworkTopology": [
        {
            "rule": "!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName == ''",
            "message": "highestTierAllowed and highestTierName must not be specified simultaneously",
        },
    ],
}

"""Pod templates, good and bad ones, and what is told of the bad ones. An API server judges the same of each."""

from typing import Any

from .builders import RawJob, job

__all__ = ("BAD", "GOOD")

PORT = {"containerPort": 80}
PROBE = {"exec": {"command": ["x"]}}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
LIMITS = {"cpu": "1", "memory": "1Gi"}
LATER = "DuringSchedulingIgnoredDuringExecution"
IN = {"key": "a.b/c", "operator": "In", "values": ["v"]}
NODE = {"key": "metadata.name", "operator": "In", "values": ["n"]}
HERE = {"topologyKey": "kubernetes.io/hostname"}
SPREAD = HERE | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
HTTP = {"path": "/", "port": 80}


def mounts(*paths: str) -> list[dict[str, Any]]:
    return [{"name": "v", "mountPath": path} for path in paths]


def init(**fields: Any) -> RawJob:
    return job().pod(initContainers=[{"name": "init", "image": "i", **fields}])


def labelled(labels: dict[str, str]) -> RawJob:
    template = job().make()["spec"]["tasks"][0]["template"]
    return job().task(template={**template, "metadata": {"labels": labels}})


def nodes(*expressions: Any, kind: str = "matchExpressions") -> RawJob:
    """Select the nodes of a term."""
    required = {"nodeSelectorTerms": [{kind: list(expressions)}] if expressions else []}
    return job().pod(affinity={"nodeAffinity": {f"required{LATER}": required}})


def preferring(weight: int, **preference: Any) -> RawJob:
    """Prefer some nodes."""
    return job().pod(affinity={"nodeAffinity": {f"preferred{LATER}": [{"weight": weight, "preference": preference}]}})


def apart(**term: Any) -> RawJob:
    """Keep away from other Pods."""
    return job().pod(affinity={"podAntiAffinity": {f"required{LATER}": [term]}})


def beside(weight: int, **term: Any) -> RawJob:
    """Prefer to be near other Pods."""
    return job().pod(affinity={"podAffinity": {f"preferred{LATER}": [{"weight": weight, "podAffinityTerm": term}]}})


def spread(*constraints: Any) -> RawJob:
    """Spread the Pods."""
    return job().pod(topologySpreadConstraints=list(constraints))


def tolerating(**toleration: Any) -> RawJob:
    """Tolerate a taint."""
    return job().pod(tolerations=[toleration])


def probed(**probe: Any) -> RawJob:
    """Ask the container whether it lives."""
    return job().container(livenessProbe=probe)


def as_user(**context: Any) -> RawJob:
    """Set the security context of the Pod."""
    return job().pod(securityContext=context)


GOOD = {
    "several containers": init(),
    "a sidecar with a probe": init(restartPolicy="Always", livenessProbe=PROBE),
    "named ports": job().container(ports=[PORT | {"name": "http"}, {"containerPort": 81, "name": "h2"}]),
    "the same number twice without a name": job().container(ports=[PORT, PORT | {"protocol": "UDP"}]),
    "env from elsewhere": job().container(env=[{"name": "A", "valueFrom": FIELD}, {"name": "b.c-d", "value": ""}]),
    "a volume and its mount": job()
    .pod(volumes=[{"name": "v", "emptyDir": {}}])
    .container(volumeMounts=mounts("/a", "/b")),
    "a volume without a source": job().pod(volumes=[{"name": "v"}]),
    "requests below limits": job().container(
        resources={"limits": LIMITS, "requests": {"cpu": "500m", "memory": "1024Mi"}}
    ),
    "requests alone": job().container(resources={"requests": {"cpu": 1}}),
    "a whole device": job().container(resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": "1"}}),
    "the host's network": job().pod(hostNetwork=True).container(ports=[PORT | {"hostPort": 80}]),
    "labels": labelled({"a.b/c": "D_e.f", "x": ""}),
    "selected nodes": nodes(IN, {"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Gt", "values": ["1"]}),
    "a node by name": nodes(NODE, kind="matchFields"),
    "preferred nodes": preferring(100, matchExpressions=[IN]),
    "a term without expressions": job().pod(
        affinity={"nodeAffinity": {f"required{LATER}": {"nodeSelectorTerms": [{}]}}}
    ),
    "apart": apart(**HERE, labelSelector={"matchLabels": {"a": "b"}, "matchExpressions": [IN]}, namespaceSelector={}),
    "beside": beside(1, **HERE),
    "spread": spread(SPREAD, SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}, SPREAD | {"topologyKey": "zone"}),
    "spread over some": spread(SPREAD | {"minDomains": 2, "nodeTaintsPolicy": "Honor", "labelSelector": {}}),
    "all taints": tolerating(operator="Exists"),
    "a taint": tolerating(key="a.b/c", value="v", effect="NoExecute", tolerationSeconds=-1),
    "a taint without a value": tolerating(key="a", operator="Equal"),
    "users and groups": as_user(runAsUser=0, runAsGroup=2147483647, fsGroup=1, supplementalGroups=[0, 1]),
    "a profile": as_user(seccompProfile={"type": "Localhost", "localhostProfile": "a.json"}),
    "a container's user": job().container(
        securityContext={"runAsUser": 1, "privileged": True, "seccompProfile": {"type": "Unconfined"}}
    ),
    "probes": job().container(
        livenessProbe={"httpGet": HTTP | {"scheme": "HTTPS"}, "terminationGracePeriodSeconds": 1},
        readinessProbe={"tcpSocket": {"port": "web-1"}, "successThreshold": 3},
        startupProbe={"grpc": {"port": 80}, "periodSeconds": 0, "successThreshold": 1},
    ),
    "hooks": job().container(lifecycle={"postStart": PROBE, "preStop": {"sleep": {"seconds": 1}}}),
    "own name servers": job().pod(dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.1"]}),
    "volumes of objects": job().pod(
        volumes=[{"name": "a", "configMap": {"name": "c"}}, {"name": "b", "secret": {"secretName": "s"}}]
    ),
    "what happens to messages": job().container(terminationMessagePolicy="FallbackToLogsOnError"),
}

BAD = {
    "no containers": (job().pod(containers=[]), "containers Required value"),
    "no template": (job().task(template=None), "containers Required value"),
    "container without a name": (job().container(name=None), "containers[0].name Required value"),
    "container name": (job().container(name="Main"), "containers[0].name a container's name must be a DNS label"),
    "image": (job().container(image=""), "containers[0].image Required value"),
    "image with a blank": (
        job().container(image=" i"),
        "containers[0].image must not have leading or trailing whitespace",
    ),
    "pull policy": (job().container(imagePullPolicy="Often"), "containers[0].imagePullPolicy Unsupported value"),
    "two containers of one name": (init(name="main"), "initContainers[0].name Duplicate value"),
    "probe of an init container": (
        init(readinessProbe=PROBE),
        "initContainers[0].readinessProbe may not be set",
    ),
    "port 0": (job().container(ports=[{"containerPort": 0}]), "ports[0].containerPort must be between 1 and 65535"),
    "port 65536": (
        job().container(ports=[{"containerPort": 65536}]),
        "ports[0].containerPort must be between 1 and 65535",
    ),
    "host port": (job().container(ports=[PORT | {"hostPort": -1}]), "ports[0].hostPort must be between 1 and 65535"),
    "host port on the host's network": (
        job().pod(hostNetwork=True).container(ports=[PORT | {"hostPort": 81}]),
        "ports[0].hostPort must match",
    ),
    "protocol": (job().container(ports=[PORT | {"protocol": "ICMP"}]), "ports[0].protocol Unsupported value"),
    "port name": (job().container(ports=[PORT | {"name": "a-very-long-name"}]), "ports[0].name must be at most 15"),
    "port name of digits": (job().container(ports=[PORT | {"name": "80"}]), "ports[0].name must be at most 15"),
    "port name twice": (
        job().container(ports=[PORT | {"name": "a"}, {"containerPort": 81, "name": "a"}]),
        "ports[1].name Duplicate",
    ),
    "env without a name": (job().container(env=[{"value": "x"}]), "env[0].name Required value"),
    "env name": (job().container(env=[{"name": "A=B"}]), "env[0].name a variable's name"),
    "env with value and source": (
        job().container(env=[{"name": "A", "value": "x", "valueFrom": FIELD}]),
        "env[0].valueFrom may not be specified when `value` is not empty",
    ),
    "env with two sources": (
        job().container(env=[{"name": "A", "valueFrom": FIELD | SECRET}]),
        "env[0].valueFrom may not have more than one field",
    ),
    "mount of an unknown volume": (job().container(volumeMounts=mounts("/a")), "volumeMounts[0].name Not found"),
    "mount path twice": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}}]).container(volumeMounts=mounts("/a", "/a")),
        "volumeMounts[1].mountPath must be unique",
    ),
    "mount without a path": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}}]).container(volumeMounts=[{"name": "v"}]),
        "volumeMounts[0].mountPath Required value",
    ),
    "volume name": (job().pod(volumes=[{"name": "V", "emptyDir": {}}]), "volumes[0].name must be a DNS label"),
    "volume twice": (job().pod(volumes=[{"name": "v"}, {"name": "v"}]), "volumes[1].name Duplicate value"),
    "volume of two types": (
        job().pod(volumes=[{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]),
        "volumes[0] may not specify more than 1 volume type",
    ),
    "no quantity": (
        job().container(resources={"limits": {"cpu": "1 core"}}),
        "resources.limits[cpu] '1 core' is not a quantity",
    ),
    "negative amount": (job().container(resources={"limits": {"cpu": "-1"}}), "resources.limits[cpu] must be greater"),
    "request above limit": (
        job().container(resources={"limits": LIMITS, "requests": {"memory": "2Gi"}}),
        "resources.requests must be less than or equal to memory limit of 1Gi",
    ),
    "half a device": (
        job().container(resources={"limits": {"x.y/gpu": "2"}, "requests": {"x.y/gpu": "1"}}),
        "resources.requests must be equal to x.y/gpu limit of 2",
    ),
    "a part of a device": (
        job().container(resources={"limits": {"x.y/gpu": "1.5"}}),
        "resources.limits[x.y/gpu] must be an integer",
    ),
    "device without a limit": (
        job().container(resources={"requests": {"x.y/gpu": "1"}}),
        "resources.limits Limit must be set for non overcommitable",
    ),
    "restart policy": (job().pod(restartPolicy="Sometimes"), "spec.restartPolicy Unsupported value"),
    "DNS policy": (job().pod(dnsPolicy="Mine"), "spec.dnsPolicy Unsupported value"),
    "node selector": (job().pod(nodeSelector={"bad key": "v"}), "spec.nodeSelector a key must be"),
    "node selector's value": (
        job().pod(nodeSelector={"a": "v v"}),
        "spec.nodeSelector[a] a label's value must be",
    ),
    "toleration": (
        job().pod(tolerations=[{"operator": "Exists"}, {"operator": "Foo"}]),
        "spec.tolerations[1].operator Unsupported value",
    ),
    "toleration's effect": (
        job().pod(tolerations=[{"key": "a", "effect": "Never"}]),
        "spec.tolerations[0].effect Unsupported value",
    ),
    "hostname": (job().pod(hostname="a.b"), "spec.hostname must be a DNS label"),
    "subdomain": (job().pod(subdomain="A"), "spec.subdomain must be a DNS label"),
    "service account": (job().pod(serviceAccountName="A"), "spec.serviceAccountName must be a DNS subdomain"),
    "deadline": (job().pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds must be greater than 0"),
    "ephemeral container": (
        job().pod(ephemeralContainers=[{"name": "e", "image": "i"}]),
        "spec.ephemeralContainers ephemeral containers not allowed",
    ),
    "label key": (
        labelled({"a b": "c"}),
        "metadata.labels a key must be",
    ),
    "label value": (
        labelled({"a": "b c"}),
        "metadata.labels[a] a label's value must be",
    ),
    "node operator": (nodes(IN | {"operator": "Inn"}), "matchExpressions[0].operator Unsupported value"),
    "node key": (nodes(IN | {"key": "a b"}), "matchExpressions[0].key a key must be"),
    "no node": (nodes(), "nodeSelectorTerms Required value"),
    "In without values": (nodes(IN | {"values": []}), "matchExpressions[0].values must be specified"),
    "Exists with values": (nodes(IN | {"operator": "Exists"}), "matchExpressions[0].values may not be specified"),
    "Gt of two": (
        nodes(IN | {"operator": "Gt", "values": ["1", "2"]}),
        "matchExpressions[0].values must be a single value",
    ),
    "a field of a node": (nodes(NODE | {"key": "a"}, kind="matchFields"), "matchFields[0].key must be metadata.name"),
    "a node by some operator": (
        nodes(NODE | {"operator": "Exists"}, kind="matchFields"),
        "matchFields[0].operator Unsupported value",
    ),
    "two nodes by name": (
        nodes(NODE | {"values": ["a", "b"]}, kind="matchFields"),
        "matchFields[0].values must be a single value",
    ),
    "weight of nodes": (preferring(0, matchExpressions=[IN]), "[0].weight must be between 1 and 100"),
    "preferred operator": (
        preferring(1, matchExpressions=[IN | {"operator": "in"}]),
        "[0].preference.matchExpressions[0].operator Unsupported value",
    ),
    "apart nowhere": (apart(labelSelector={}), "podAntiAffinity.required" + LATER + "[0].topologyKey Required value"),
    "apart by a bad key": (apart(topologyKey="a b"), "[0].topologyKey a key must be"),
    "apart from a bad label": (
        apart(**HERE, labelSelector={"matchLabels": {"a": "b c"}}),
        "[0].labelSelector.matchLabels[a] a label's value must be",
    ),
    "apart by Gt": (
        apart(**HERE, labelSelector={"matchExpressions": [IN | {"operator": "Gt"}]}),
        "[0].labelSelector.matchExpressions[0].operator Unsupported value",
    ),
    "weight of Pods": (beside(101, **HERE), "[0].weight must be between 1 and 100"),
    "beside nowhere": (beside(1), "[0].podAffinityTerm.topologyKey Required value"),
    "skew": (spread(SPREAD | {"maxSkew": 0}), "topologySpreadConstraints[0].maxSkew must be greater than 0"),
    "spread nowhere": (spread(SPREAD | {"topologyKey": ""}), "topologySpreadConstraints[0].topologyKey Required value"),
    "spread somehow": (
        spread(SPREAD | {"whenUnsatisfiable": "Never"}),
        "topologySpreadConstraints[0].whenUnsatisfiable Unsupported value",
    ),
    "spread twice": (spread(SPREAD, SPREAD | {"maxSkew": 2}), "topologySpreadConstraints[1] Duplicate value"),
    "spread over none": (spread(SPREAD | {"minDomains": 0}), "[0].minDomains must be greater than or equal to 1"),
    "spread over some, or not": (
        spread(SPREAD | {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}),
        "[0].minDomains can only use minDomains if",
    ),
    "spread by a policy": (spread(SPREAD | {"nodeTaintsPolicy": "Yes"}), "[0].nodeTaintsPolicy Unsupported value"),
    "every taint with a value": (
        tolerating(key="a", operator="Exists", value="v"),
        "tolerations[0].value must be empty",
    ),
    "a taint without a key": (tolerating(value="v"), "tolerations[0].operator must be Exists"),
    "a taint's key": (tolerating(key="a b", operator="Exists"), "tolerations[0].key a key must be"),
    "a taint's value": (tolerating(key="a", value="v v"), "tolerations[0].value a taint's value must be"),
    "seconds without NoExecute": (
        tolerating(operator="Exists", effect="NoSchedule", tolerationSeconds=3),
        "tolerations[0].effect must be NoExecute",
    ),
    "a negative user": (as_user(runAsUser=-4), "spec.securityContext.runAsUser must be between 0 and"),
    "a large group": (as_user(fsGroup=2147483648), "spec.securityContext.fsGroup must be between 0 and"),
    "a negative group": (as_user(supplementalGroups=[1, -1]), "supplementalGroups[1] must be between 0 and"),
    "change policy": (as_user(fsGroupChangePolicy="Never"), "securityContext.fsGroupChangePolicy Unsupported value"),
    "profile": (as_user(seccompProfile={"type": "Default"}), "securityContext.seccompProfile.type Unsupported value"),
    "profile without a file": (
        as_user(seccompProfile={"type": "Localhost"}),
        "securityContext.seccompProfile.localhostProfile Required value",
    ),
    "a container's negative user": (
        job().container(securityContext={"runAsUser": -1}),
        "containers[0].securityContext.runAsUser must be between 0 and",
    ),
    "privileged without privileges": (
        job().container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        "containers[0].securityContext cannot set",
    ),
    "probe of nothing": (probed(periodSeconds=1), "livenessProbe must be exactly one of"),
    "probe of two": (probed(httpGet=HTTP, tcpSocket={"port": 1}), "livenessProbe must be exactly one of"),
    "probe without a command": (probed(exec={}), "livenessProbe.exec.command Required value"),
    "probe of a port": (probed(tcpSocket={"port": 0}), "livenessProbe.tcpSocket.port must be between 1 and 65535"),
    "probe of a port's name": (probed(httpGet={"port": "Web_1"}), "livenessProbe.httpGet.port must be a number"),
    "probe by a scheme": (probed(httpGet=HTTP | {"scheme": "ftp"}), "httpGet.scheme Unsupported value"),
    "probe in the past": (probed(**PROBE, initialDelaySeconds=-1), "initialDelaySeconds must be greater than or equal"),
    "alive twice": (probed(**PROBE, successThreshold=2), "livenessProbe.successThreshold must be 1"),
    "ready in the end": (
        job().container(readinessProbe=PROBE | {"terminationGracePeriodSeconds": 1}),
        "readinessProbe.terminationGracePeriodSeconds must not be set",
    ),
    "no time to end": (
        probed(**PROBE, terminationGracePeriodSeconds=0),
        "livenessProbe.terminationGracePeriodSeconds must be greater than 0",
    ),
    "hook of nothing": (job().container(lifecycle={"preStop": {}}), "lifecycle.preStop must be exactly one of"),
    "what happens to messages": (
        job().container(terminationMessagePolicy="Log"),
        "containers[0].terminationMessagePolicy Unsupported value",
    ),
    "no name servers": (job().pod(dnsPolicy="None"), "spec.dnsConfig.nameservers Required value"),
    "volume of a nameless map": (
        job().pod(volumes=[{"name": "v", "configMap": {}}]),
        "volumes[0].configMap.name Required value",
    ),
    "volume of a nameless secret": (
        job().pod(volumes=[{"name": "v", "secret": {}}]),
        "volumes[0].secret.secretName Required value",
    ),
}

"""Random objects for admission: any JSON, and Jobs with odd values in the places that the rules read."""

from typing import Any

from hypothesis import strategies as st

__all__ = ("anything", "odd_jobs")

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["default", "*", "PodFailed", "AbortJob", "any", "svc", "mpi", "1Gi", "a-b"])
)  # fmt: skip


def anything() -> st.SearchStrategy[Any]:
    """Return any JSON value."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=8,
    )


def _record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return an object with some of the fields, each now and then with anything in it; or no object at all."""
    odd = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
    choices = {name: st.one_of(good, good, good, odd) for name, good in fields.items()}
    return st.one_of(*[st.fixed_dictionaries({}, optional=choices)] * 5, odd)


def _lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3)


names = st.sampled_from(["a", "b", "worker", "", "A_b", "x" * 64])
numbers = st.integers(min_value=-1, max_value=4)
amounts = st.dictionaries(st.sampled_from(["cpu", "x.y/gpu", "memory"]), st.sampled_from(["1", "2", 1, "1.5", "bad"]))
policies = _lists(
    _record(
        action=st.sampled_from(["AbortJob", "RestartJob", "Nope"]),
        event=st.sampled_from(["*", "PodFailed", "PodPending", "OutOfSync"]),
        events=_lists(st.sampled_from(["*", "PodFailed", "PodEvicted"])),
        exitCode=st.integers(min_value=0, max_value=3),
        timeout=st.sampled_from(["5m", "never"]),
    )
)
containers = _lists(
    _record(
        name=names,
        image=st.sampled_from(["i", " i"]),
        ports=_lists(_record(containerPort=numbers, name=names, hostPort=numbers)),
        env=_lists(_record(name=names, value=names, valueFrom=_record(fieldRef=_record(), secretKeyRef=_record()))),
        volumeMounts=_lists(_record(name=names, mountPath=st.sampled_from(["/a", "/b"]))),
        resources=_record(requests=amounts, limits=amounts),
    )
)
pods = _record(
    containers=containers,
    initContainers=containers,
    volumes=_lists(_record(name=names, emptyDir=_record(), secret=_record())),
    hostNetwork=st.booleans(),
    hostname=names,
    restartPolicy=names,
)
tasks = _lists(
    _record(
        name=names,
        replicas=numbers,
        minAvailable=numbers,
        policies=policies,
        dependsOn=_record(name=_lists(names), iteration=st.sampled_from(["any", "some"])),
        topologyPolicy=st.sampled_from(["none", "restricted"]),
        partitionPolicy=_record(totalPartitions=numbers, partitionSize=numbers, minPartitions=numbers),
        template=_record(metadata=_record(labels=st.dictionaries(names, names)), spec=pods),
    )
)
plugins = st.dictionaries(
    st.sampled_from(["env", "svc", "ssh", "mpi", "ray", "pytorch", "tensorflow", "hcclrank", "nosuch"]),
    st.none() | _lists(st.sampled_from(["--port=1", "--master=a", "--head", "x"])),
    max_size=3,
)


def odd_jobs() -> st.SearchStrategy[Any]:
    """Return a Job with the right fields and, here and there, the wrong values."""
    return _record(
        metadata=_record(name=names, namespace=names),
        spec=_record(
            tasks=tasks,
            minAvailable=numbers,
            minSuccess=numbers,
            queue=names,
            policies=policies,
            plugins=plugins,
            volumes=_lists(
                _record(mountPath=st.sampled_from(["/a", ""]), volumeClaimName=names, volumeClaim=_record())
            ),
            networkTopology=_record(highestTierAllowed=numbers, highestTierName=names),
        ),
    )

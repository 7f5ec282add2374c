"""The metadata of an object, as the API server judges it whatever the kind is. Pure; never raises.

The form of a Job's own name is in `names`, because it must also be the value of a label.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .names import A_LABEL, A_SUBDOMAIN, is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from .problem import Problem
from .raw import entries, items, mapping, text

__all__ = ("check_keys", "check_labels", "check_metadata")

ANNOTATIONS_MAX: Final = 256 * 1024  # bytes of all keys and values together
KEY: Final = "a key must be at most 63 letters, digits and -_. , perhaps behind a domain and a slash"
OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")


def check_metadata(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with an object's metadata, apart from its name."""
    namespace, prefix = text(metadata, "namespace"), text(metadata, "generateName")
    if namespace and not is_dns_label(namespace):
        yield Problem(field="metadata.namespace", value=namespace, message=f"a namespace must be {A_LABEL}")
    if prefix and not is_dns_subdomain(f"{prefix}x"):
        yield Problem(field="metadata.generateName", value=prefix, message=f"must begin {A_SUBDOMAIN}")
    yield from check_keys(metadata, field="metadata")
    for index, finalizer in enumerate(items(metadata, "finalizers")):
        if not isinstance(finalizer, str) or not is_label_key(finalizer):
            message = "a finalizer must be at most 63 letters, digits and -_. behind a domain and a slash"
            yield Problem(field=f"metadata.finalizers[{index}]", value=str(finalizer), message=message)
    for index, owner in entries(metadata, "ownerReferences"):
        for name in OWNER_FIELDS:
            if not text(owner, name):
                yield Problem(field=f"metadata.ownerReferences[{index}].{name}", value=None, message="Required value")


def check_labels(labels: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with labels, or with a selector that lists some."""
    for key, value in labels.items():
        if not is_label_key(str(key)):
            yield Problem(field=field, value=str(key), message=KEY)
        elif isinstance(value, str) and not is_label_value(value):
            message = "a label's value must be at most 63 letters, digits and -_."
            yield Problem(field=f"{field}[{key}]", value=value, message=message)


def check_keys(metadata: Mapping[str, Any], *, field: str) -> Iterator[Problem]:
    """Yield what is wrong with labels and annotations."""
    yield from check_labels(mapping(metadata, "labels"), field=f"{field}.labels")
    size = 0
    for key, value in mapping(metadata, "annotations").items():
        if not is_label_key(str(key).lower()):  # here, unlike in a label, the domain may have capitals
            yield Problem(field=f"{field}.annotations", value=str(key), message=KEY)
        size += len(str(key).encode(errors="replace")) + len(str(value).encode(errors="replace"))
    if size > ANNOTATIONS_MAX:
        message = f"Too long: keys and values have {size} bytes together; at most {ANNOTATIONS_MAX} are allowed"
        yield Problem(field=f"{field}.annotations", value=None, message=message)

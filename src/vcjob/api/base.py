"""The common base of the API models. Pure.

Models are read-only views of what the API server holds: they are validated once per object version, never mutated and
never written back (templates and claims stay plain dictionaries, so no field that a newer server knows gets lost).
"""

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

__all__ = (
    "DNS_LABEL",
    "DNS_NAME",
    "INT32_MAX",
    "INT64_MAX",
    "Count",
    "Int32",
    "InvalidObject",
    "Model",
    "ObjectMeta",
    "null_as",
    "parse",
)

M = TypeVar("M", bound="Model")

DNS_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def null_as(default: Any) -> BeforeValidator:
    """Read an explicit null as if the field were absent, as Go does."""
    return BeforeValidator(lambda value: default if value is None else value)


Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Count = Annotated[int, Field(ge=0, lt=2**31), null_as(0)]


class InvalidObject(ValueError):
    """An object's field has a value that the API does not allow.

    `field` is the path as kubectl prints it (`spec.tasks[0].replicas`), `value` what was found, `problem` a sentence.
    """

    def __init__(self, field: str, *, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        super().__init__(f"{field}: {problem}")


class Model(BaseModel):
    """A frozen value whose Python names are the snake_case of the API's camelCase names."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class ObjectMeta(Model):
    """The part of metav1.ObjectMeta that the operator reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


def parse(model: type[M], raw: dict[str, Any]) -> M:
    """Validate a raw object; raise InvalidObject that names the first offending field."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise InvalidObject(path, value=first.get("input"), problem=first["msg"]) from error

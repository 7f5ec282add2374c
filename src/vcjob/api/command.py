"""The Command of `bus.volcano.sh/v1alpha1`: one request to a Job or a Queue, deleted as it is carried out. Pure."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Model, ObjectMeta, null_as

__all__ = ("Command", "CommandTarget")

Text = Annotated[str, null_as("")]


class CommandTarget(Model):
    """The object that the command is for."""

    api_version: str = Field(
        description="API version of its kind: batch.volcano.sh/v1alpha1 or scheduling.volcano.sh/v1beta1."
    )
    kind: str = Field(description="Job or Queue.")
    name: str = Field(description="Its name; a Job is looked for in the command's own namespace.")
    uid: str = Field(description="Its UID; a command for another UID than the object's is ignored.")
    controller: bool | None = Field(None, description="True if this reference points to the managing controller.")
    block_owner_deletion: bool | None = Field(
        None, description="True if the target cannot be removed before this command in a foreground deletion."
    )


class Command(Model):
    """One request to a Job or a Queue."""

    api_version: Literal["bus.volcano.sh/v1alpha1"] = "bus.volcano.sh/v1alpha1"
    metadata: ObjectMeta
    action: Text = Field(
        "", description="What to do: AbortJob, ResumeJob, TerminateJob, CompleteJob, RestartJob, OpenQueue, CloseQueue."
    )
    target: CommandTarget = Field(description="The Job or Queue that it is for.")
    reason: Text = Field("", description="Why, as one CamelCase word.")
    message: Text = Field("", description="Why, for people.")

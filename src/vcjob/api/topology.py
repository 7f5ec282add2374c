"""Network topology: how near to each other the members of a group must run. Pure."""

from typing import Annotated

from pydantic import Field

from .base import Count, Model, null_as

__all__ = ("NetworkTopology",)


class NetworkTopology(Model):
    """How near to each other in the network the members of a group are placed."""

    mode: Annotated[str, null_as("hard")] = Field(
        "hard",
        description="hard: the group runs within the tier or not at all; soft: the scheduler tries.",
        json_schema_extra={"enum": ["hard", "soft"], "x-default": "hard"},
    )
    highest_tier_allowed: Count | None = Field(
        None, description="The highest tier of the network that the group may span. Not together with highestTierName."
    )
    highest_tier_name: str = Field(
        "",
        description="The same by name. Not together with highestTierAllowed.",
        json_schema_extra={"maxLength": 253},
    )

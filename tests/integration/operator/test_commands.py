"""Commands that are not carried out say why, on the API server's Events."""

from tests.integration.conftest import Standing
from tests.integration.harness.api import COMMANDS, JOBS, Api, eventually
from tests.integration.harness.jobs import ask, events_of, in_phase, job, play, pods_when, task


async def messages(api: Api, name: str, namespace: str, *, kind: str, reason: str) -> list[str]:
    """Wait for Events about an object, and return their messages."""
    events = await eventually(lambda: events_of(api, name, namespace, kind=kind, reason=reason))
    return [event["message"] for event in events]


async def test_a_command_for_a_job_that_is_not_there_is_told_of(standing: Standing, api: Api):
    place = standing.namespace
    command = await ask(api, "AbortJob", "nowhere", place, uid="u")
    said = await messages(api, command, place, kind="Command", reason="CommandIgnored")
    assert said == ["there is no Job nowhere for AbortJob; the Command is dropped"]
    assert await api.find(COMMANDS, command, place) is None


async def test_a_command_that_asks_for_what_is_no_action_is_told_of(standing: Standing, api: Api):
    place = standing.namespace
    await api.create(JOBS, job("asked", task("w")), place)
    await play(api, (await pods_when(api, "asked", place, count=1)).values(), "Running")
    await in_phase(api, "asked", place, "Running")
    command = await ask(api, "Explode", "asked", place)
    said = await messages(api, "asked", place, kind="Job", reason="ActionIgnored")
    assert said == [f"Command {command} asks for 'Explode', which is no action of a Job"]

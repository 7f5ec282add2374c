"""Pod templates are judged as the API server judges the Pods that would be made of them."""

from tests.integration.harness.api import PODS, Api, Refused
from tests.unit.admission.builders import RawJob
from tests.unit.admission.templates import BAD, GOOD


async def refusal(api: Api, built: RawJob, namespace: str) -> str:
    """Return what the API server says to a Pod of the Job's first task; empty when it takes it."""
    template = built.make()["spec"]["tasks"][0].get("template", {})
    body = {"metadata": {"name": "p", **template.get("metadata", {})}, "spec": template.get("spec", {})}
    try:
        await api.call("POST", PODS.path(namespace), body=body, params={"dryRun": "All"})
    except Refused as refused:
        return refused.message
    return ""


async def test_the_api_server_takes_the_pods_of_good_templates(api: Api, namespace: str):
    said = {title: await refusal(api, built, namespace) for title, built in GOOD.items()}
    assert {title: message for title, message in said.items() if message} == {}


async def test_the_api_server_refuses_the_pods_of_bad_templates(api: Api, namespace: str):
    said = {title: await refusal(api, built, namespace) for title, (built, _) in BAD.items()}
    assert [title for title, message in said.items() if not message] == []

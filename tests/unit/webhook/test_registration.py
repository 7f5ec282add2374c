"""The shape of the webhook configurations that `--local` makes."""

import base64

from vcjob.webhook.registration import configuration
from vcjob.webhook.routes import ROUTES, WebhookKind

MADE = configuration(
    WebhookKind.VALIDATING, name="vcjob", routes=ROUTES, url="https://127.0.0.1:9443", authority=b"pem"
)


def test_each_webhook_is_asked_at_its_path_and_trusted_by_the_authority():
    (found,) = [webhook for webhook in MADE["webhooks"] if webhook["name"] == "validatejob.volcano.sh"]
    assert found["clientConfig"] == {
        "url": "https://127.0.0.1:9443/jobs/validate",
        "caBundle": base64.b64encode(b"pem").decode(),
    }
    assert found["rules"][0]["operations"] == ["CREATE", "UPDATE"]


def test_no_rule_covers_a_subresource():
    assert all("/" not in r and "*" not in r for w in MADE["webhooks"] for r in w["rules"][0]["resources"])


def test_a_dry_run_asks_too():
    assert {webhook["sideEffects"] for webhook in MADE["webhooks"]} == {"None"}

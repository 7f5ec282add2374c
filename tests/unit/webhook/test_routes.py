"""The table of webhooks: Volcano's paths and names, never a Pod; a review at the wrong door is turned away."""

import pytest
from tests.unit.webhook.builders import review_body, review_of_queue

from vcjob.webhook.review import read_review
from vcjob.webhook.routes import MUTATE_JOBS, ROUTES, VALIDATE_JOBS, VALIDATE_QUEUES, Route, find_fault, routes_of


def test_paths_and_names_are_volcanos():
    assert [(route.path, route.name, route.operations) for route in ROUTES] == [
        ("/jobs/mutate", "mutatejob.volcano.sh", ("CREATE",)),
        ("/jobs/validate", "validatejob.volcano.sh", ("CREATE", "UPDATE")),
        ("/podgroups/mutate", "mutatepodgroup.volcano.sh", ("CREATE",)),
        ("/podgroups/validate", "validatepodgroup.volcano.sh", ("CREATE",)),
        ("/queues/mutate", "mutatequeue.volcano.sh", ("CREATE",)),
        ("/queues/validate", "validatequeue.volcano.sh", ("CREATE", "UPDATE", "DELETE")),
    ]


def test_a_kind_has_its_own_webhooks():
    assert [route.path for route in routes_of(("jobs",))] == ["/jobs/mutate", "/jobs/validate"]
    assert {route.resource for route in routes_of(("queues", "podgroups"))} == {
        "podgroups.scheduling.volcano.sh/v1beta1",
        "queues.scheduling.volcano.sh/v1beta1",
    }


def test_no_webhook_is_asked_about_pods():
    assert "pods" not in {route.plural for route in ROUTES}


@pytest.mark.parametrize(
    ("route", "body", "fault"),
    [
        pytest.param(MUTATE_JOBS, review_body("CREATE", new={}), "", id="a new job"),
        pytest.param(VALIDATE_JOBS, review_body("UPDATE", new={}, old={}), "", id="a changed job"),
        pytest.param(MUTATE_JOBS, review_body("UPDATE", new={}, old={}), "for CREATE, not for UPDATE", id="operation"),
        pytest.param(VALIDATE_JOBS, review_body("DELETE", old={}), "CREATE and UPDATE, not for DELETE", id="deletion"),
        pytest.param(MUTATE_JOBS, review_body(new={}, plural="pods"), "not for pods.batch.volcano.sh", id="kind"),
        pytest.param(
            VALIDATE_JOBS, review_body(new={}, subResource="status"), "not for jobs/status.batch", id="subresource"
        ),
        pytest.param(VALIDATE_QUEUES, review_of_queue("DELETE", old={}), "", id="a queue that goes"),
        pytest.param(VALIDATE_QUEUES, review_of_queue("DELETE"), "holds no oldObject", id="nothing that goes"),
        pytest.param(MUTATE_JOBS, review_of_queue("CREATE", new={}), "not for queues.scheduling", id="group"),
        pytest.param(MUTATE_JOBS, review_body("CREATE"), "the review holds no object", id="no object"),
        pytest.param(VALIDATE_JOBS, review_body("UPDATE", new={}), "holds no oldObject", id="no old object"),
    ],
)
def test_only_what_belongs_here_is_judged(route: Route, body: bytes, fault: str):
    found = find_fault(route, read_review(body))
    assert fault in found
    assert bool(fault) == bool(found)

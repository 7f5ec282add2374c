"""One pass after another: Commands, refusals, what is told, and what is looked at twice before it is believed."""

import copy
import json
from collections.abc import Callable

import pytest
from tests.unit.controller.cluster import JOBS, PODGROUPS, PODS, Key, Raw
from tests.unit.controller.stories import begin, refusing, told, world_with
from tests.unit.controller.world import ACTIONS, KEY, Incident, World, run
from tests.unit.lifecycle.builders import job as build

from vcjob.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, ServerError, TooLarge

Saying = ApiError | bytes


class Refusing:
    """Refuses one kind of write, and counts how often it is tried."""

    def __init__(self, verb: str, plural: str, error: ApiError | None = None) -> None:
        self.attempts = 0
        self._refused = (verb, plural)
        self._error = error or Forbidden("you may not", code=403)

    def __call__(self, asked: str, key: Key) -> ApiError | None:
        if (asked, key[0]) != self._refused:
            return None
        self.attempts += 1
        return self._error


def saying_once(verb: str, plural: str, sayings: list[Saying]) -> Callable[[str, Key], ApiError | bytes | None]:
    return lambda asked, key: sayings.pop() if sayings and (asked, key[0]) == (verb, plural) else None


two = build().task("w", 2)
NOT_FOUND = NotFound("not there", code=404, reason="NotFound")


def test_a_command_is_carried_out_although_the_first_status_write_fails():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("status", JOBS, ServerError("not now", code=500))
        world.command(0)
        await world.catch_up(0)
        assert world.phase == "Running" and not world.cluster.all("commands")
        world.operator.api.refuse = lambda verb, key: None
        await world.settle()

    assert begin(two, story).phase == "Aborted"


@pytest.mark.parametrize("lost", [1, 2], ids=["the Command's deletion", "the status that says Restarting"])
def test_a_command_is_carried_out_once_although_an_answer_gets_lost(lost):
    async def story(world: World) -> None:
        world.operator.api.answers_lost = {world.operator.api.writes + lost}
        world.command(ACTIONS.index("RestartJob"))
        await world.settle()

    world = begin(two, story)
    assert world.laws.phases == ["Pending", "Running", "Restarting", "Pending"]
    assert world.job["status"]["retryCount"] == 1
    assert len(told(world, "CommandIssued")) == 1


@pytest.mark.parametrize(
    ("verb", "plural", "moves"),
    [
        pytest.param("patch", PODS, [("scale", 1)], id="the mark of a Pod that goes"),
        pytest.param("delete", PODS, [("command", 0)], id="a Pod"),
        pytest.param("delete", PODGROUPS, [("command", 0)], id="the group"),
        pytest.param("delete", "commands", [("command", 0)], id="the Command"),
    ],
)
def test_a_conflict_over_what_is_still_there_is_no_sign_that_it_has_gone(verb, plural, moves):
    async def story(world: World) -> None:
        conflicts = 3

        def refuse(asked: str, key: Key) -> ApiError | None:
            nonlocal conflicts
            if (asked, key[0]) != (verb, plural) or not conflicts:
                return None
            conflicts -= 1
            return Conflict("the object has been modified", code=409)

        world.operator.api.refuse = refuse
        await world.play(moves)
        await world.settle()
        assert conflicts < 3
        world.end_termination(0)
        world.end_termination(0)
        await world.settle()

    world = begin(two, story, volcano=True)
    if moves[0][0] == "command":
        assert world.phase == "Aborted"
        assert not world.cluster.all(PODS) and not world.cluster.all(PODGROUPS)
    else:
        assert len(world.cluster.all(PODS)) == world.job["spec"]["tasks"][0]["replicas"]


def test_a_clock_that_is_set_back_does_not_hold_a_refused_job():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("delete", PODS, Forbidden("you may not", code=403))
        await world.play([("command", 0)])
        for _ in range(9):
            world.cluster.now += 1
            await world.catch_up(0)
        world.operator.api.refuse = lambda verb, key: None
        world.cluster.now -= 3600
        world.operator.queue.add(("ns", "j"))
        await world.catch_up(0)
        assert all(pod["metadata"].get("deletionTimestamp") for pod in world.cluster.all(PODS))

    begin(two, story)


def test_two_commands_at_once_are_both_carried_out_in_order():
    async def story(world: World) -> None:
        world.command(0)
        world.command(1)
        await world.settle()

    world = begin(two, story)
    assert world.laws.phases == ["Pending", "Running", "Aborting", "Restarting", "Pending"]
    assert len(told(world, "CommandIssued")) == 2


def test_a_command_in_vain_is_told_once():
    async def story(world: World) -> None:
        world.command(1)
        await world.settle()

    assert told(begin(two, story), "ActionIgnored") == [
        "Command c1 asks for ResumeJob, which means nothing while the Job is Running"
    ]


def test_what_holds_for_a_while_is_told_once():
    async def story(world: World) -> None:
        world.end_pod(0, 1)
        for number in range(4):
            world.restart_container(number)
            await world.catch_up(0)

    delayed = two.policy("PodFailed", "AbortJob", timeout="1m")
    assert len(told(begin(delayed, story), "ExecuteAction")) == 1


@pytest.mark.parametrize(
    ("verb", "plural", "moves"),
    [
        pytest.param("delete", PODS, [("command", 0)], id="Pods of an aborted Job"),
        pytest.param("delete", PODS, [("scale", 2)], id="Pods of a scaling"),
        pytest.param("delete", PODGROUPS, [("command", 0)], id="the group"),
        pytest.param("create", PODS, [("delete pod", 1)], id="a Pod"),
    ],
)
def test_a_refused_write_is_tried_again_ever_more_seldom(verb, plural, moves):
    async def story(world: World) -> None:
        refuse = world.operator.api.refuse = Refusing(verb, plural)
        await world.play(moves)
        for _ in range(300):  # seconds
            world.cluster.now += 1
            world.end_termination(0)
            await world.catch_up(0)
        assert 3 < refuse.attempts < 40
        job = world.job
        assert job is not None and "you may not" in job["status"]["state"]["message"]

    begin(two, story, volcano=True)


@pytest.mark.parametrize("verb", ["create", "delete"])
def test_a_large_job_that_is_refused_costs_few_requests(verb):
    async def story(world: World) -> None:
        refuse = world.operator.api.refuse = Refusing(verb, PODS)
        if verb == "delete":
            world.command(0)
        await world.catch_up(0)
        assert 1 <= refuse.attempts <= 16
        refuse.attempts = 0
        world.cluster.now += 2
        await world.catch_up(0)
        assert refuse.attempts == 1

    large = build().task("w", 200)
    if verb == "create":
        run(world_with(large), story)
    else:
        begin(large, story)


def test_pods_whose_deletion_is_refused_are_not_counted_as_terminating():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("delete", PODS, Forbidden("you may not", code=403))
        world.command(ACTIONS.index("AbortJob"))
        for _ in range(5):
            await world.catch_up(0)
            world.cluster.now += 1
        job = world.job
        assert job is not None
        status = job["status"]
        assert (status["state"]["phase"], status.get("running"), status.get("terminating")) == ("Aborting", 2, None)
        assert "you may not" in status["state"]["message"]

    begin(two, story)


@pytest.mark.parametrize(
    ("other_is_there", "reason", "words"),
    [
        pytest.param(True, "NameConflict", "belongs to Job other; rename a Job or one of its tasks", id="it lives"),
        pytest.param(False, "OldPodsTerminating", "belongs to Job other, which is gone, and is not gone", id="gone"),
    ],
)
def test_a_pod_of_another_job_is_a_conflict_for_as_long_as_that_job_is_there(other_is_there, reason, words):
    world = world_with(two)

    async def story(world: World) -> None:
        other = copy.deepcopy(world.job)
        other["metadata"] |= {"name": "other", "uid": "other", "deletionTimestamp": "2030-01-01T00:00:00Z"}
        if other_is_there:
            world.operator.engine.view.take_job(other)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "other", "uid": "other"}
        labels = {"volcano.sh/job-name": "other", "volcano.sh/task-spec": "x"}
        owned = {"name": "j-w-0", "labels": labels, "ownerReferences": [{**owner, "controller": True}]}
        world.cluster.create(PODS, {"metadata": owned, "spec": {}, "status": {"phase": "Pending"}})
        world.operator.hear_all()
        for _ in range(4):
            world.cluster.now += 10
            await world.catch_up(0)
        state = world.job["status"]["state"]
        assert state["reason"] == reason
        assert words in state["message"]

    run(world, story)


@pytest.mark.parametrize("plural", [PODS, PODGROUPS, "configmaps", "services"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Invalid("no such field", code=422), id="422"),
        pytest.param(Invalid("not so", code=400), id="400"),
        pytest.param(TooLarge("too much", code=413), id="413"),
    ],
)
def test_one_word_that_it_can_never_be_ends_no_job(plural: str, answer: ApiError):
    """It may come from a proxy, or from somebody's webhook that is not well."""
    world = world_with(two.plugin("svc"), volcano=True)

    async def story(world: World) -> None:
        sayings: list[Saying] = [answer, answer]
        world.operator.api.refuse = saying_once("create", plural, sayings)
        await world.settle()
        assert (world.phase, len(world.cluster.all(PODS)), sayings) == ("Pending", 2, [])

    run(world, story)


def test_what_the_server_refuses_again_and_again_fails_the_job_after_it_said_why():
    world = world_with(two)

    async def story(world: World) -> None:
        began = world.cluster.now
        refused = Refusing("create", PODS, Invalid("no such field", code=422))
        world.operator.api.refuse = refused
        await world.catch_up(0)
        assert (world.phase, world.job["status"]["state"]["reason"]) == ("Pending", "InvalidSpec")
        assert "no such field" in world.job["status"]["state"]["message"]
        for _ in range(3):  # news in between is no reason to hurry
            world.operator.hear_all()
            await world.catch_up(0)
        assert world.phase == "Pending"
        await world.settle()
        assert (world.phase, world.job["status"]["state"]["reason"]) == ("Failed", "InvalidSpec")
        assert (refused.attempts, world.cluster.now - began) == (3, pytest.approx(2.0, abs=0.5))
        assert len(told(world, "InvalidSpec")) == 1

    run(world, story)


def test_the_claims_of_a_job_are_not_recorded_in_another_of_its_name():
    claim = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    world = world_with(two.spec(volumes=[claim]))

    async def story(world: World) -> None:
        world.operator.hear_all()
        mine = {**claim, "volumeClaimName": "mine"}
        world.cluster.objects.pop(KEY)
        spec = {**world.submitted["spec"], "volumes": [mine]}
        kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
        world.cluster.create(JOBS, {**kind, "metadata": {"name": "j"}, "spec": spec})
        world.job_uid = world.cluster.objects[KEY]["metadata"]["uid"]
        await world.operator.work()  # of what it has heard, which is the first one
        assert world.job is not None
        assert world.job["spec"]["volumes"] == [mine]
        await world.settle()
        assert (world.phase, world.job["spec"]["volumes"]) == ("Pending", [mine])

    run(world, story)


def test_a_secret_without_its_keys_gets_new_ones():
    async def story(world: World) -> None:
        key = ("secrets", "ns", "j-ssh")
        before = copy.deepcopy(world.cluster.objects[key]["data"])
        world.cluster.change(key, lambda raw: raw["data"].pop("id_rsa"))
        world.delete_pod(1)
        await world.settle()
        after = world.cluster.objects[key]["data"]
        assert after.keys() == before.keys()
        assert all(after[file] != before[file] for file in before.keys() - {"config"})

    begin(two.plugin("ssh"), story)


def test_a_rejection_is_forgotten_with_the_spec_that_caused_it():
    async def story(world: World) -> None:
        world.operator.api.refuse = refusing("create", PODS, Invalid("no such field", code=422))
        world.scale(6)  # three
        await world.catch_up(0)
        assert world.phase == "Running"
        world.operator.api.refuse = lambda verb, key: None
        world.scale(4)  # two
        world.lose_node(0)
        world.delete_pod(1)
        await world.settle()
        assert world.phase == "Pending"

    begin(two, story)


def test_a_pod_that_has_lost_its_label_is_a_conflict_of_names_and_no_endless_loop():
    async def story(world: World) -> None:
        world.cluster.change((PODS, "ns", "j-w-0"), lambda raw: raw["metadata"]["labels"].clear())
        # A watch by label tells of it as of a deletion.
        world.operator.engine.view.pods.store.forget_absent([("ns", "j-w-1")], version=10**9, namespace=None)
        await world.catch_up(0)
        job = world.job
        assert job is not None and job["status"]["state"]["reason"] == "NameConflict"
        assert "has lost its label" in job["status"]["state"]["message"]
        assert world.operator.queue.next_due() > world.cluster.now
        assert not world.operator.queue.ready()

    begin(two, story)


def test_a_group_that_a_finalizer_holds_is_waited_for():
    async def story(world: World) -> None:
        (group,) = world.cluster.all(PODGROUPS)
        key = (PODGROUPS, "ns", group["metadata"]["name"])
        world.cluster.change(key, lambda raw: raw["metadata"].update(finalizers=["x"]))
        world.command(2)
        for _ in range(20):
            world.end_termination(0)
            await world.catch_up(0)
        job = world.job
        assert job is not None and job["status"]["state"]["message"].endswith("is not gone yet")
        world.cluster.finish(key)
        await world.settle()
        assert world.phase == "Pending"

    begin(two, story, volcano=True)


def test_a_group_that_has_lost_its_owner_is_named_and_made_anew_when_it_is_gone():
    async def story(world: World) -> None:
        (group,) = world.cluster.all(PODGROUPS)
        key = (PODGROUPS, "ns", group["metadata"]["name"])
        world.cluster.change(key, lambda raw: raw["metadata"].update(ownerReferences=[]))
        await world.catch_up(0)
        job = world.job
        assert job is not None and job["status"]["state"]["reason"] == "NameConflict"
        assert not world.operator.queue.ready()
        world.cluster.delete(key)
        await world.settle()
        (made,) = world.cluster.all(PODGROUPS)
        assert made["metadata"]["ownerReferences"]
        assert made["metadata"]["uid"] != group["metadata"]["uid"]

    begin(two, story, volcano=True)


def test_a_copy_of_a_group_hides_nothing():
    async def story(world: World) -> None:
        (group,) = world.cluster.all(PODGROUPS)
        copy = {**group, "metadata": {"name": "copy", "ownerReferences": group["metadata"]["ownerReferences"]}}
        world.cluster.create(PODGROUPS, copy)
        await world.catch_up(0)
        world.cluster.delete((PODGROUPS, "ns", "copy"))
        await world.catch_up(0)
        assert not world.operator.queue.ready()
        assert world.phase == "Running"
        assert [found["metadata"]["name"] for found in world.cluster.all(PODGROUPS)] == [group["metadata"]["name"]]

    begin(two, story, volcano=True)


def test_pods_that_the_watch_does_not_show_yet_are_no_evictions():
    """The status of a Job can be newer than what the watch of Pods has told so far."""

    async def story(world: World) -> None:
        operator = world._start()
        store = operator.engine.view.pods.store
        store.forget_absent([], version=10**9, namespace=None)
        operator.engine._memories.clear()
        world.operator = operator
        await world.catch_up(0)
        assert world.phase == "Running"
        await world.settle()

    world = begin(two.policy("PodEvicted", "RestartJob"), story)
    assert world.phase == "Running"
    assert world.job is not None and "retryCount" not in world.job["status"]


def test_pods_that_vanished_while_no_operator_was_there_are_evictions():
    async def story(world: World) -> None:
        world.cluster.delete((PODS, "ns", "j-w-1"), grace=False)
        world.laws.open.clear()
        world.laws.open.append(Incident("gone", "w", 1))
        world.operator = world._start()
        await world.settle()

    world = begin(two.policy("PodEvicted", "RestartJob"), story)
    assert world.job is not None and world.job["status"]["retryCount"] == 1


def test_a_job_of_the_same_name_waits_for_the_pods_of_the_old_one():
    async def story(world: World) -> None:
        old: Raw = dict(world.cluster.objects[KEY])
        world.cluster.delete(KEY)
        fresh = {**old, "metadata": {"name": "j"}}
        fresh.pop("status")
        world.cluster.create(JOBS, fresh)
        world.cluster.collect_garbage()
        await world.catch_up(0)
        job = world.job
        assert job is not None and job["status"]["state"]["reason"] == "OldPodsTerminating"
        world.job_uid = job["metadata"]["uid"]
        await world.settle()
        assert {p["metadata"]["ownerReferences"][0]["uid"] for p in world.cluster.all(PODS)} == {world.job_uid}

    begin(two, story)


def test_while_the_server_is_busy_pods_come_first_and_their_numbers_later():
    world = world_with(two)

    async def story(world: World) -> None:
        world.get_busy(1)
        await world.catch_up(0)
        assert len(world.cluster.all(PODS)) == 2
        assert "status" not in world.job
        world.get_busy(0)
        world.operator.engine.quiet.done(("ns", "j"))
        await world.catch_up(0)
        assert (world.phase, world.job["status"]["pending"]) == ("Pending", 2)

    run(world, story)


def test_numbers_of_many_jobs_give_way_longer():
    """With their time up at once they would come into the middle of what they gave way to."""
    world = world_with(two)

    async def story(world: World) -> None:
        world.get_busy(1)
        for number in range(1000):
            world.operator.engine.quiet.wait(("ns", f"other-{number}"))
        for status_is_there in (False, False, True):
            await world.catch_up(0)
            assert ("status" in world.job) is status_is_there
            world.cluster.now += 21

    run(world, story)


def test_what_a_job_waits_for_is_told_even_while_the_server_is_busy():
    world = world_with(two)

    async def story(world: World) -> None:
        world.get_busy(1)
        world.cluster.pod_quota = 1
        await world.catch_up(0)
        assert world.job["status"]["state"]["reason"] == "QuotaExceeded"
        world.cluster.pod_quota = None
        world.cluster.now += 1
        await world.catch_up(0)
        assert len(world.cluster.all(PODS)) == 2

    run(world, story)


def test_pods_whose_eviction_matters_are_counted_at_once_however_busy_the_server_is():
    """Nobody else would know that they were there, if this process died before it told."""
    world = world_with(two.policy("PodEvicted", "TerminateJob"))

    async def story(world: World) -> None:
        world.get_busy(1)
        await world.catch_up(0)
        await world.crash(0)
        world.delete_pod(0)
        world.end_termination(0)
        await world.settle()
        assert world.phase == "Terminated"

    run(world, story)


def test_a_failed_pod_is_told_of_even_while_the_server_is_busy():
    async def story(world: World) -> None:
        world.get_busy(1)
        world.end_pod(0, 1)
        await world.catch_up(0)
        world.wait(1)
        await world.catch_up(0)
        assert (world.phase, world.job["status"]["failed"]) == ("Running", 1)

    begin(build().task("w", 3, minAvailable=1).spec(minAvailable=1), story)


def test_news_is_told_even_while_the_server_is_busy():
    async def story(world: World) -> None:
        world.get_busy(1)
        world.command(0)
        await world.catch_up(0)
        assert world.phase == "Aborting"

    begin(two, story)


def test_numbers_that_give_way_are_written_in_the_end():
    async def story(world: World) -> None:
        before = world.job["status"]
        world.get_busy(1)
        world.delete_pod(0)
        world.end_termination(0)
        await world.catch_up(0)
        assert world.job["status"] == before
        for _ in range(3):
            world.wait(1)
            await world.catch_up(0)
        assert (world.job["status"]["running"], world.job["status"]["pending"]) == (2, 1)

    begin(build().task("w", 3, minAvailable=1).spec(minAvailable=1), story)


def test_a_life_begins_with_pending_even_while_the_server_is_busy():
    world = world_with(two)

    async def story(world: World) -> None:
        world.get_busy(1)
        await world.catch_up(0)
        world.command(ACTIONS.index("TerminateJob"))
        await world.catch_up(0)
        await world.settle()
        assert world.laws.phases == ["Pending", "Terminating", "Terminated"]

    run(world, story)


def test_a_command_for_an_earlier_job_of_the_name_is_dropped_and_told_of():
    async def story(world: World) -> None:
        world.job_uid = "earlier"
        world.command(0)
        await world.settle()
        assert not world.cluster.all("commands")

    world = begin(two, story)
    assert world.phase == "Running"
    assert told(world, "CommandIgnored") == ["Command c1 (AbortJob) was for an earlier Job of this name"]


def test_a_job_that_a_write_does_not_find_is_looked_for_before_it_is_forgotten():
    """No watch would bring it back."""
    world = world_with(two)

    async def story(world: World) -> None:
        refusals: list[Saying] = [NOT_FOUND]
        world.operator.api.refuse = saying_once("status", JOBS, refusals)
        await world.settle()
        assert (world.phase, len(world.cluster.all(PODS)), refusals) == ("Pending", 2, [])

    run(world, story)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(NOT_FOUND, id="not found"),
        pytest.param(Invalid("not so", code=400), id="invalid"),
        pytest.param(b"", id="an empty body"),
        pytest.param(b'{"kind":"Status","status":"Failure"}', id="a Status that is no success"),
        pytest.param(b'{"kind":"Status","status":"Success"}', id="a Status in its place"),
        pytest.param(b"<html>", id="a page"),
    ],
)
def test_a_pod_whose_deletion_is_not_as_it_was_told_is_deleted_nevertheless(answer: Saying):
    """What somebody between the server and us says of a deletion loses no Pod and condemns no spec."""

    async def story(world: World) -> None:
        answers = [answer]
        world.operator.api.refuse = saying_once("delete", PODS, answers)
        world.end_pod(0, 1)
        await world.catch_up(0)
        await world.settle()
        assert answers == []
        assert (world.phase, [pod["metadata"]["name"] for pod in world.cluster.all(PODS)]) == ("Terminated", ["j-w-0"])

    begin(two.policy("PodFailed", "TerminateJob"), story)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(NOT_FOUND, id="not found"),
        pytest.param(b"null", id="nothing"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b'{"kind":"Status","status":"Success"}', id="a success of nothing"),
        pytest.param(
            b'{"kind":"Command","metadata":{"name":"c0","uid":"u","resourceVersion":"1"}}', id="another Command"
        ),
    ],
)
def test_a_command_whose_deletion_is_not_as_it_was_told_is_deleted_and_carried_out_once(answer: Saying):
    async def story(world: World) -> None:
        answers = [answer]
        world.operator.api.refuse = saying_once("delete", "commands", answers)
        world.command(ACTIONS.index("RestartJob"))
        await world.settle()
        assert (world.phase, answers, world.cluster.all("commands")) == ("Pending", [], [])
        assert world.job is not None and world.job["status"]["retryCount"] == 1

    begin(two, story)


def test_a_command_that_comes_back_from_its_deletion_unharmed_is_deleted_and_carried_out_once():
    async def story(world: World) -> None:
        world.command(ACTIONS.index("RestartJob"))
        (command,) = world.cluster.all("commands")
        answers: list[Saying] = [json.dumps(command).encode()]
        world.operator.api.refuse = saying_once("delete", "commands", answers)
        await world.settle()
        assert (world.phase, answers, world.cluster.all("commands")) == ("Pending", [], [])
        assert world.job is not None and world.job["status"]["retryCount"] == 1

    begin(two, story)


@pytest.mark.parametrize("lie", ["as it was", "far ahead", "another Job"])
def test_a_decision_is_not_carried_out_before_its_status_is_known_to_be_written(lie: str):
    async def story(world: World) -> None:
        assert world.job is not None
        job = copy.deepcopy(world.job)
        job["metadata"] |= {"as it was": {}, "far ahead": {"resourceVersion": "999999"}, "another Job": {"name": "k"}}[
            lie
        ]
        answers: list[Saying] = [json.dumps(job).encode()]
        world.operator.api.refuse = saying_once("status", JOBS, answers)
        world.command(ACTIONS.index("AbortJob"))
        await world.settle()
        assert (world.phase, answers, world.cluster.all(PODS)) == ("Aborted", [], [])
        assert "retryCount" not in world.job["status"]

    begin(two, story)


def test_a_job_that_is_said_to_be_gone_while_it_is_listed_is_not_forgotten():
    async def story(world: World) -> None:
        refusals: list[Saying] = [Conflict("modified", code=409, reason="Conflict")]
        reads: list[Saying] = [NOT_FOUND]
        status, get = saying_once("status", JOBS, refusals), saying_once("get", JOBS, reads)
        world.operator.api.refuse = lambda verb, key: status(verb, key) or get(verb, key)
        world.end_pod(0, 1)
        await world.settle()
        assert (refusals, reads) == ([], [])
        assert world.phase == "Terminated"

    begin(two.policy("PodFailed", "TerminateJob"), story)


@pytest.mark.parametrize("reads", [[], [NOT_FOUND]], ids=["found", "said to be gone once more"])
def test_a_command_for_a_job_that_was_wrongly_forgotten_is_carried_out(reads: list[Saying]):
    async def story(world: World) -> None:
        record = world.operator.engine.view.job(("ns", "j"))
        assert record is not None
        world.operator.engine.view.drop_job(record)
        world.operator.api.refuse = saying_once("get", JOBS, [*reads])
        world.command(ACTIONS.index("AbortJob"))
        await world.settle()
        assert (world.phase, world.cluster.all("commands")) == ("Aborted", [])

    begin(two, story)


def test_an_object_of_a_plugin_counts_as_made_only_when_the_answer_is_about_it():
    async def story(world: World) -> None:
        answers: list[Saying] = [b'{"kind":"Namespace","metadata":{"name":"ns","uid":"u","resourceVersion":"1"}}']
        world.operator.api.refuse = saying_once("create", "services", answers)
        await world.settle()
        assert answers == []
        assert [item["metadata"]["name"] for item in world.cluster.all("services")] == ["j"]

    run(world_with(two.plugin("svc")), story)

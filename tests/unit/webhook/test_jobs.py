"""Verdicts on Jobs. The rules themselves are tested in tests/unit/admission."""

from tests.unit.admission.builders import job, task

from vcjob.admission.defaulting import default_job
from vcjob.admission.queues import check_queue
from vcjob.webhook.jobs import judge_change, judge_new, mutate_new, queue_of
from vcjob.webhook.review import Verdict

STORED = default_job(job().tasks(task("a"), task("b")).make())


def test_a_new_job_gets_its_defaults_in_one_patch():
    patched = {operation["path"] for operation in mutate_new(job().make(), scheduler="volcano").patch}
    assert {"/spec/queue", "/spec/schedulerName", "/spec/maxRetry", "/spec/tasks", "/spec/minAvailable"} == patched


def test_a_job_that_says_all_is_left_alone():
    assert mutate_new(STORED, scheduler="other") == Verdict()


def test_a_denial_names_every_problem():
    denial = judge_new(default_job(job().tasks(task("a"), task("a")).spec(minAvailable=9).make())).denial
    assert "duplicated task name a" in denial
    assert "job 'minAvailable' should not be greater than total replicas" in denial


def test_a_problem_with_the_queue_comes_with_the_others():
    problem = check_queue(None, "gone")
    assert problem is not None
    assert "unable to find job queue: gone" in judge_new(STORED, others=(problem,)).denial


def test_warnings_are_given_with_a_denial_too():
    verdict = judge_new(default_job(job().plugins(svc=["--wrong"]).spec(minAvailable=9).make()))
    assert verdict.denial
    assert len(verdict.warnings) == 1


def test_a_warning_names_its_plugin_once():
    (warning,) = judge_new(default_job(job().plugins(svc=["--wrong"]).make())).warnings
    assert warning.startswith('spec.plugins.svc: argument "--wrong" is ignored')


def test_labels_of_a_job_that_is_broken_stay_writable_without_a_word():
    broken = job().plugins("nosuch", svc=["--wrong"]).spec(minAvailable=99).make()
    labelled = {**broken, "metadata": {**broken["metadata"], "labels": {"a": "b"}}}
    assert judge_change(broken, labelled) == Verdict()


def test_a_manifest_without_the_defaults_can_be_applied_again_and_scaled():
    bare = job().tasks(task("a", 3), task("b")).make()
    assert judge_change(STORED, {**STORED, "spec": {**STORED["spec"], "tasks": bare["spec"]["tasks"]}}) == Verdict()


def test_a_manifest_can_be_applied_again_whatever_scheduler_is_the_default():
    bare = job().tasks(task("a", 3), task("b")).make()
    assert judge_change(default_job(job().tasks(task("a"), task("b")).make(), scheduler="mine"), bare) == Verdict()
    other = {**bare, "spec": {**bare["spec"], "schedulerName": "other"}}
    assert "spec.schedulerName" in judge_change(STORED, other).denial


def test_a_change_of_the_queue_is_refused():
    moved = {**STORED, "spec": {**STORED["spec"], "queue": "other"}}
    assert "job updates may not change fields other than" in judge_change(STORED, moved).denial


def test_a_job_without_a_queue_goes_to_the_default_one():
    assert queue_of({}) == queue_of({"spec": {"queue": ""}}) == "default"

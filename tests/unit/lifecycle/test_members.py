"""A Job that is to run: what is made in which order, what is taken away, and what the status says meanwhile."""

import pytest
from tests.unit.lifecycle.builders import (
    NOW,
    created,
    deleted,
    failed,
    job,
    pending,
    running,
    steps,
    succeeded,
    terminating,
)

from vcjob.api.job import Phase
from vcjob.lifecycle.outcome import Plan, Write
from vcjob.lifecycle.steps import (
    AnnotateJob,
    ApplyObject,
    CheckClaim,
    CreateClaim,
    CreateGroup,
    CreatePods,
    DeleteObject,
    PatchGroup,
    PatchJob,
)

new = job().task("w", 2)


def kinds(made) -> list[str]:
    return [type(step).__name__ for step in steps(made)]


# The beginning


def test_a_new_job_says_pending_before_its_pods_are_made():
    made = new.plan()
    assert (made.write, made.status.phase, created(made)) == (Write.EARLY, Phase.PENDING, ["w-0", "w-1"])
    assert (made.status.reason, made.status.message) == ("PodsPending", "0 of 2 Pods have started, minAvailable is 2")
    assert [c.status for c in made.status.conditions] == ["Pending"]


@pytest.mark.parametrize(
    ("age_s", "lost_s", "looked"),
    [
        pytest.param(59.0, 80.0, False, id="seen since"),
        pytest.param(61.0, 62.0, True, id="not seen for long"),
        pytest.param(5.0, 1.0, True, id="a Pod lost since"),
    ],
)
def test_before_a_pod_is_replaced_objects_that_may_be_gone_are_looked_for(age_s: float, lost_s: float, looked: bool):
    """Somebody may have deleted the Service or ConfigMap by hand, and the new Pod would never start without it."""
    svc = job().task("w", 2).plugin("svc").running().marked("svc").pod(running("w", 0))
    applied = {(i.wanted.ref.kind, i.wanted.ref.name): i.digest_at(0) for i in svc.make().revision.objects}
    made = svc.memory(applied=applied, seen=dict.fromkeys(applied, NOW - age_s), lost_at=NOW - lost_s).plan()
    assert any(isinstance(step, ApplyObject) and step.expected for step in steps(made)) is looked
    assert created(made) == ["w-1"]


def test_objects_are_looked_for_once_more_some_time_after_a_pod_was_lost():
    """Who deletes everything of a Job takes its objects when its Pods are there again."""
    svc = job().task("w", 1).plugin("svc").running().marked("svc").pod(running("w", 0))
    applied = {(i.wanted.ref.kind, i.wanted.ref.name): i.digest_at(0) for i in svc.make().revision.objects}

    def remembering(*, lost_s: float, seen_s: float) -> Plan:
        return svc.memory(applied=applied, seen=dict.fromkeys(applied, NOW - seen_s), lost_at=NOW - lost_s).plan()

    early = remembering(lost_s=5.0, seen_s=4.0)
    assert (early.stages, early.wake) == ((), NOW + 10)
    due = remembering(lost_s=15.0, seen_s=14.0)
    assert {type(step) for step in steps(due)} == {ApplyObject}
    done = remembering(lost_s=15.0, seen_s=0.0)
    assert (done.stages, done.wake) == ((), None)


def test_the_objects_of_plugins_come_before_the_first_pod():
    made = new.plugin("svc").plan()
    assert {type(step) for step in steps(made)} == {ApplyObject}
    applied = {(s.item.wanted.ref.kind, s.item.wanted.ref.name): s.item.digest_at(0) for s in steps(made)}
    later = new.plugin("svc").memory(applied=applied, seen=dict.fromkeys(applied, NOW)).plan()
    assert created(later) == ["w-0", "w-1"]
    assert later.status.controlled == {"plugin-svc": "svc"}


def test_a_new_process_trusts_the_mark_of_a_job_that_nobody_edited():
    alive = [running("w", 0), running("w", 1)]
    assert new.plugin("svc").running().marked("svc").pod(*alive).plan().stages == ()
    edited = new.plugin("svc").running().marked("svc").scale("w", 2).pod(*alive)
    assert {type(step) for step in steps(edited.plan())} == {ApplyObject}


def test_hosts_and_group_follow_a_scaling_before_the_new_pods():
    scaled = new.plugin("svc").running().marked("svc").volcano("Running").pod(running("w", 0), running("w", 1))
    group = scaled.make().group
    first, second = scaled.scale("w", 3).volcano_as_is(group).plan().stages
    assert {type(step) for step in first} == {ApplyObject, PatchGroup}
    assert [type(step) for step in second] == [CreatePods]


def test_names_of_claims_are_recorded_before_claims_are_made():
    volumes = [{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}, {"mountPath": "/b"}]
    made = new.spec(volumes=volumes[:1]).plan()
    (patch,) = steps(made)
    assert isinstance(patch, PatchJob)
    name = patch.patch[0]["value"]
    assert (patch.patch[0]["path"], name.startswith("j-pvc-")) == ("/spec/volumes/0/volumeClaimName", True)
    named = new.spec(volumes=[{**volumes[0], "volumeClaimName": name}])
    (claim,) = steps(named.plan())
    assert isinstance(claim, CreateClaim)
    made = named.memory(claims=frozenset({name})).plan()
    assert (created(made), made.status.controlled) == (["w-0", "w-1"], {f"volume-pvc-{name}": name})


def test_a_claim_of_the_user_is_looked_for_and_awaited():
    snapshot = new.spec(volumes=[{"mountPath": "/a", "volumeClaimName": "data"}])
    assert [type(step) for step in steps(snapshot.plan())] == [CheckClaim]
    waiting = snapshot.pending().hold("ClaimNotFound").plan()
    assert (waiting.stages, waiting.status.phase, waiting.status.reason) == ((), Phase.PENDING, "ClaimNotFound")
    assert waiting.wake == NOW + 10


def test_claims_that_are_recorded_in_the_status_are_not_looked_for_again():
    snapshot = new.spec(volumes=[{"mountPath": "/a", "volumeClaimName": "data"}])
    assert kinds(snapshot.pending(controlled={"volume-pvc-data": "data"}).plan()) == ["CreatePods"]


def test_a_job_of_a_queue_that_other_clusters_extend_is_annotated_first():
    queue = {"spec": {"extendClusters": [{"name": "b"}]}}
    assert kinds(new.given(queue=queue).plan()) == ["AnnotateJob"]
    annotated = new.given(queue=queue).annotated(**{"volcano.sh__job_forwarding": "true"})
    assert kinds(annotated.plan()) == ["CreatePods"]
    assert AnnotateJob(annotations={}) not in steps(new.running().given(queue=queue).plan())


# The gang


def test_pods_wait_for_the_group():
    made = new.volcano(None).plan()
    assert kinds(made) == ["CreateGroup"]
    waiting = new.pending().volcano("Pending").plan()
    assert (kinds(waiting), waiting.status.reason) == ([], "PodGroupPending")
    assert waiting.status.message == "PodGroup j-uid-1 is not admitted by the gang scheduler yet"


@pytest.mark.parametrize("phase", ["Inqueue", "Running", "Unknown", "Completed"])
def test_any_later_phase_of_the_group_lets_pods_be_made(phase):
    assert created(new.pending().volcano(phase).plan()) == ["w-0", "w-1"]


def test_what_the_gang_scheduler_says_is_told():
    made = new.pending().volcano("Pending", condition="Unschedulable", message="0/3 nodes fit").plan()
    assert made.status.message == "PodGroup j-uid-1 is unschedulable: 0/3 nodes fit"
    assert [note.message for note in made.events] == ["PodGroup ns:j unschedulable, reason: 0/3 nodes fit"]


def test_a_group_that_was_deleted_by_hand_is_made_again_and_the_pods_stay():
    made = new.running().volcano(None).pod(running("w", 0), running("w", 1)).plan()
    assert (kinds(made), made.status.phase) == (["CreateGroup"], Phase.RUNNING)
    assert isinstance(steps(made)[0], CreateGroup)


def test_counters_are_fresh_while_the_group_waits():
    made = new.running(running=2).volcano("Pending").pod(running("w", 0), succeeded("w", 1)).plan()
    assert (made.status.running, made.status.succeeded) == (1, 1)


# Phases


@pytest.mark.parametrize(
    ("snapshot", "pods", "phase"),
    [
        pytest.param(new.pending(), [running("w", 0), pending("w", 1)], "Pending", id="too few started"),
        pytest.param(new.pending(), [running("w", 0), succeeded("w", 1)], "Running", id="all started"),
        pytest.param(
            new.spec(minAvailable=1).pending(), [failed("w", 0), pending("w", 1)], "Running", id="a failed one counts"
        ),
        pytest.param(new.running(), [running("w", 0), pending("w", 1)], "Pending", id="too many pend again"),
        pytest.param(new.running(), [running("w", 0), terminating("w", 1)], "Running", id="one goes"),
        pytest.param(new.scale("w", 0).pending(), [], "Running", id="nothing is asked for"),
        pytest.param(new.scale("w", 2, minimum=0).pending(), [], "Running", id="a minimum of zero"),
    ],
)
def test_pending_and_running_follow_from_the_pods(snapshot, pods, phase):
    made = snapshot.pod(*pods).plan()
    assert made.status.phase == phase
    assert made.status.reason and made.status.message


def test_a_running_job_says_how_many_run():
    made = new.running().pod(running("w", 0), succeeded("w", 1)).plan()
    assert (made.status.reason, made.status.message) == ("PodsRunning", "1 of 2 Pods run, 1 succeeded, 0 failed")


def test_the_first_pod_that_cannot_start_is_named():
    made = new.pending().pod(pending("w", 0), pending("w", 1, detail="container main: ErrImagePull")).plan()
    assert made.status.message == (
        "0 of 2 Pods have started, minAvailable is 2; pod j-w-1: container main: ErrImagePull"
    )


def test_times_and_conditions_move_with_the_phase_only():
    before = new.running().pod(running("w", 0), running("w", 1))
    made = before.pod(succeeded("w", 0)).plan()
    assert (made.status.last_transition, made.status.conditions) == (before.make().status.last_transition, ())


def test_missing_pods_are_made_again_with_the_present_version():
    made = new.running(version=3, retry_count=2).pod(running("w", 1, job_version=3)).plan()
    (creation,) = steps(made)
    assert (created(made), creation.version, creation.retry_count) == (["w-0"], 3, 2)


def test_a_pod_that_terminates_keeps_its_name_until_it_is_gone():
    assert created(new.running().pod(running("w", 0), terminating("w", 1)).plan()) == []


def test_a_pod_of_an_earlier_run_that_turns_up_late_is_removed():
    made = new.running(version=1).pod(running("w", 0, job_version=1), running("w", 1, job_version=0)).plan()
    assert deleted(made) == ["w-1"]


# Scaling


three = job().task("w", 3)
alive = [running("w", i) for i in range(3)]


def test_scaling_down_takes_the_highest_indices_and_marks_them():
    made = three.running().scale("w", 1).pod(*alive).plan()
    assert deleted(made) == ["w-2*", "w-1*"]


def test_what_scaling_takes_is_out_of_the_counters_before_it_is_gone():
    """Otherwise a process that starts in between would take it for evictions."""
    made = three.running().scale("w", 1).pod(*alive).plan()
    assert made.write is Write.FIRST
    assert (made.status.task_counts, made.status.terminating) == ({"w": {"Running": 1}}, 2)


def test_scaling_is_never_an_eviction():
    scaled = three.policy("PodEvicted", "RestartJob").policy("PodFailed", "RestartJob").running().scale("w", 1)
    made = scaled.pod(running("w", 0), terminating("w", 1), failed("w", 2)).removed(running("w", 2, uid="x")).plan()
    assert made.status.phase is Phase.RUNNING


def test_scaling_to_zero_and_back():
    zero = three.running().scale("w", 0)
    assert deleted(zero.pod(*alive).plan()) == ["w-2*", "w-1*", "w-0*"]
    empty = zero.plan()
    assert (empty.stages, empty.status.phase) == ((), Phase.RUNNING)
    assert created(zero.scale("w", 2).plan()) == ["w-0", "w-1"]


def test_finished_pods_beyond_the_replicas_do_not_end_the_job():
    scaled = three.running().scale("w", 1).volcano("Pending").pod(running("w", 0), succeeded("w", 2))
    assert scaled.plan().status.phase is Phase.RUNNING


def test_a_scaling_that_makes_the_spec_impossible_leaves_the_living_pods_alone():
    long = job().task("w" * 55, 10).plugin("svc").running().marked("svc")
    scaled = long.scale("w" * 55, 100_001).pod(*(running("w" * 55, i) for i in range(10)))
    made = scaled.plan()
    assert (made.stages, made.status.phase, made.status.reason) == ((), Phase.RUNNING, "InvalidSpec")
    assert made.status.running == 10


# What keeps a Job waiting


@pytest.mark.parametrize(
    ("snapshot", "reason", "words"),
    [
        pytest.param(new.given(knows_queues=True), "QueueNotFound", "queue 'default' does not exist", id="no queue"),
        pytest.param(new.pod(running("w", 0, owner_uid="")), "NameConflict", "pod j-w-0 exists", id="a stranger's Pod"),
        pytest.param(
            new.pod(terminating("w", 0, owner_uid="old")),
            "OldPodsTerminating",
            "pod j-w-0 of an earlier",
            id="old Pods",
        ),
        pytest.param(new.hold("QuotaExceeded"), "QuotaExceeded", "it was refused", id="a refusal"),
    ],
)
def test_a_job_that_cannot_go_on_says_why(snapshot, reason, words):
    made = snapshot.plan()
    assert (created(made), made.status.phase, made.status.reason) == ([], Phase.PENDING, reason)
    assert words in made.status.message


def test_somebody_elses_pods_that_share_the_label_do_not_matter():
    assert created(new.pod(running("x", 7, owner_uid="")).plan()) == ["w-0", "w-1"]


def test_a_refused_creation_does_not_stop_a_scaling_down():
    made = three.running().scale("w", 1).pod(*alive).hold().plan()
    assert deleted(made) == ["w-2*", "w-1*"]


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(three.running().scale("w", 1).pod(*alive), id="scaling"),
        pytest.param(three.phase("Aborting").pod(*alive), id="Aborting"),
        pytest.param(three.phase("Aborted").pod(*alive), id="Aborted"),
        pytest.param(three.phase("Completed").pod(*alive), id="Completed"),
        pytest.param(three.restarting(version=1, retry_count=1).pod(*alive), id="Restarting"),
        pytest.param(three.spec(ttlSecondsAfterFinished=1).phase("Failed"), id="the TTL"),
    ],
)
def test_a_refused_deletion_is_not_tried_again_before_its_time(snapshot):
    made = snapshot.hold("Forbidden", deletion=True).plan()
    assert (made.stages, made.wake) == ((), NOW + 10)
    assert "it was refused" in made.status.message
    assert made.status.phase is snapshot.make().phase
    assert snapshot.plan().stages


def test_an_end_is_told_though_the_cleaning_up_is_refused_and_what_is_left_stays_marked():
    ended = new.plugin("svc").running().marked("svc").pod(succeeded("w", 0), succeeded("w", 1))
    assert ended.plan().stages
    held = ended.hold("ApiServerBusy", deletion=True).plan()
    assert (held.stages, held.status.phase) == ((), Phase.COMPLETED)
    assert held.status.controlled == {"plugin-svc": "svc"}
    after = ended.phase("Completed")
    waiting = after.hold("ApiServerBusy", deletion=True).plan()
    assert (waiting.stages, waiting.wake, waiting.status.controlled) == ((), NOW + 10, {"plugin-svc": "svc"})
    assert after.plan().stages
    assert after.plan().status.controlled == {}


@pytest.mark.parametrize("phase", ["Pending", "Restarting"])
def test_what_can_never_run_fails_with_the_reason(phase):
    made = new.plugin("nope").phase(phase).plan()
    assert (made.status.phase, made.status.reason) == (Phase.FAILED, "InvalidSpec")
    assert "nope" in made.status.message
    assert ("Warning", "InvalidSpec") in [(note.type, note.reason) for note in made.events]


def test_a_job_that_the_api_server_rejects_fails_and_its_objects_go():
    rejected = (
        new.plugin("svc").pending().memory(rejected="create pods: no such field", applied={("Service", "j"): "x"})
    )
    made = rejected.plan()
    assert made.status.phase is Phase.FAILED
    assert [step.ref.kind for step in steps(made) if isinstance(step, DeleteObject)] == ["Service"]


def test_what_the_known_plugins_have_made_goes_when_another_has_become_unknown():
    made = new.plugin("svc").plugin("nope").running().marked("svc").pod(succeeded("w", 0), failed("w", 1)).plan()
    assert (made.status.phase, made.status.reason) == (Phase.FAILED, "InvalidSpec")
    gone = {step.ref.kind for step in steps(made) if isinstance(step, DeleteObject)}
    assert gone == {"ConfigMap", "Service", "NetworkPolicy"}


def test_a_command_for_a_job_that_can_never_run_is_answered():
    notes = new.plugin("nope").pending().command("AbortJob").plan().events
    assert [note.message for note in notes if note.reason == "ActionIgnored"] == [
        "Command c asks for 'AbortJob', but the Job has failed"
    ]


def test_a_running_job_survives_a_rejected_scaling():
    made = new.running().pod(running("w", 0), running("w", 1)).memory(rejected="no").plan()
    assert made.status.phase is Phase.RUNNING


# dependsOn


chain = job().task("first", 2).task("second", 1, dependsOn={"name": ["first"]}).spec(minAvailable=1)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], ["first-0", "first-1"], id="nothing is there"),
        pytest.param([running("first", 0), running("first", 1, ready=False)], [], id="not ready"),
        pytest.param([running("first", 0), succeeded("first", 1)], ["second-0"], id="ready or succeeded"),
        pytest.param([running("first", 0), failed("first", 1)], [], id="failed"),
    ],
)
def test_a_task_waits_for_the_tasks_it_depends_on(pods, expected):
    made = chain.pending().pod(*pods).plan()
    assert created(made) == expected


def test_the_wait_of_many_tasks_is_a_short_sentence():
    long = job().task("t0", 1).spec(minAvailable=1)
    for index in range(1, 40):
        names = [f"t{earlier}" for earlier in range(index)]
        long = long.task(f"t{index}", 1, dependsOn={"name": names})
    message = long.pending().plan().status.message
    assert message.startswith("task t1 waits for t0 to be ready; task t2 waits for t0, t1 to be ready; ")
    assert message.endswith("; 34 more tasks wait")
    waits = long.pod(*(running(f"t{index}", 0) for index in range(38))).pending().plan().status.message
    assert "task t39 waits for t38 to be ready" in waits


def test_the_wait_for_a_task_is_named():
    made = chain.pending().pod(pending("first", 0), pending("first", 1)).plan()
    assert (made.status.reason, made.status.message) == (
        "WaitingForDependencies",
        "task second waits for first to be ready",
    )


@pytest.mark.parametrize(("iteration", "expected"), [("any", ["c-0"]), ("all", []), ("", [])])
def test_any_or_all_of_several_dependencies(iteration, expected):
    both = job().task("a", 1).task("b", 1).task("c", 1, dependsOn={"name": ["a", "b"], "iteration": iteration})
    assert created(both.pending().pod(running("a", 0), pending("b", 0)).plan()) == expected


def test_a_dependency_needs_its_minimum_only():
    least = job().task("a", 3, minAvailable=1).task("b", 1, dependsOn={"name": ["a"]}).spec(minAvailable=1)
    assert created(least.pending().pod(running("a", 0), pending("a", 1), pending("a", 2)).plan()) == ["b-0"]


def test_a_task_that_has_started_once_does_not_wait_again():
    made = chain.running().pod(running("first", 0), failed("first", 1), running("second", 0)).plan()
    assert made.status.reason == "PodsRunning"


def test_a_new_job_of_the_same_name_does_not_count_the_old_ones_pods():
    made = new.pod(running("w", 0, owner_uid="old"), running("w", 1, owner_uid="old")).plan()
    assert (made.status.running, made.status.phase) == (0, Phase.PENDING)


def test_a_failed_job_names_the_pod_that_failed_first_and_how():
    pods = [failed("w", 0, code=137, since=NOW - 1), failed("w", 1, code=2, since=NOW - 5)]
    made = new.running().pod(*pods).plan()
    assert made.status.phase is Phase.FAILED
    assert made.status.message.endswith("; pod " + pods[1].name + " failed: container main ended with exit code 2")

"""Claims: their names, and where they are mounted."""

from typing import Any

from tests.unit.lifecycle.builders import job
from tests.unit.plugins.builders import container

from vcjob.gang.none import NoGang
from vcjob.lifecycle.census import Member
from vcjob.lifecycle.render import PodRenderer
from vcjob.lifecycle.revision import compile_job
from vcjob.lifecycle.volumes import claim_name, volume_name


def rendered(volumes: list[dict[str, Any]], **pod: Any) -> dict[str, Any]:
    revision = compile_job(job().task("w", 1, pod=pod).spec(volumes=volumes).raw)
    renderer = PodRenderer(revision, gang=NoGang(gang_scheduler_name="volcano"), version=0, retry_count=0)
    spec: dict[str, Any] = renderer.render(Member(task="w", index=0)).manifest["spec"]
    return spec


def test_a_generated_name_depends_on_the_job_and_the_place_only():
    made = compile_job(job().task("w", 1).spec(volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}]).raw).job
    again = compile_job(job().task("w", 1).spec(volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}]).raw).job
    assert claim_name(made, 0) == claim_name(again, 0) != claim_name(made, 1)
    assert claim_name(made, 0).startswith("j-pvc-") and len(claim_name(made, 0)) == len("j-pvc-") + 12


def test_a_claim_that_is_used_twice_is_one_volume_with_both_mounts():
    spec = rendered([{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaimName": "c"}])
    (volume,) = spec["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "c"}
    mounts = spec["containers"][0]["volumeMounts"]
    assert [(m["name"], m["mountPath"]) for m in mounts] == [(volume["name"], "/a"), (volume["name"], "/b")]


def test_the_app_containers_mount_claims_and_init_containers_do_not():
    spec = rendered(
        [{"mountPath": "/a", "volumeClaimName": "c"}],
        containers=[container("a"), container("b")],
        initContainers=[container("i")],
    )
    assert all(c["volumeMounts"] for c in spec["containers"])
    assert "volumeMounts" not in spec["initContainers"][0]


def test_a_volume_name_is_a_dns_label_whatever_the_jobs_name():
    raw = job().task("w", 1).raw
    raw["metadata"]["name"] = "a." + "b" * 80
    name = volume_name(compile_job(raw).job, "c")
    assert len(name) <= 63 and "." not in name

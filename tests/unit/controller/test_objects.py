"""What is brought up to date in an object of a plugin."""

from typing import Any

from vcjob.controller.objects import collection_path, find_difference
from vcjob.plugins.base import ObjectRef, WantedObject


def wanted(manifest: dict[str, Any], *follow: tuple[str, ...]) -> WantedObject:
    return WantedObject(ref=ObjectRef(api_version="v1", kind="ConfigMap", name="x"), manifest=manifest, follow=follow)


def test_an_object_that_is_right_is_left_alone():
    same = {"data": {"a": "1"}}
    assert find_difference(wanted(same, ("data",)), {"metadata": {}, **same}) == {}


def test_keys_that_are_gone_go():
    patch = find_difference(wanted({"data": {"a": "1"}}, ("data",)), {"data": {"a": "0", "b": "2"}})
    assert patch == {"data": {"a": "1", "b": None}}


def test_only_the_paths_to_follow_are_touched():
    new = {"data": {"config": "new", "key": "new"}}
    patch = find_difference(wanted(new, ("data", "config")), {"data": {"config": "old", "key": "old"}})
    assert patch == {"data": {"config": "new"}}


def test_nothing_is_followed_unless_it_is_said():
    assert find_difference(wanted({"spec": {"a": 1}}), {"spec": {"a": 2}}) == {}


def test_what_is_missing_is_added():
    assert find_difference(wanted({"spec": {"a": 1}}, ("spec", "a")), {}) == {"spec": {"a": 1}}


def test_where_objects_live():
    policy = ObjectRef(api_version="networking.k8s.io/v1", kind="NetworkPolicy", name="x")
    assert collection_path(policy, "ns") == "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"
    assert collection_path(wanted({}).ref, "ns") == "/api/v1/namespaces/ns/configmaps"

"""The record survives the disk, and knows when it does not."""

from pathlib import Path

import pytest
from tests.unit.cluster.builders import record, running

from vcjob.cluster.errors import ClusterError
from vcjob.cluster.record import read_record, write_record


def test_what_is_written_is_read(tmp_path: Path):
    written = record("etcd", "kwok")
    write_record(tmp_path / "cluster.json", record=written)
    assert read_record(tmp_path / "cluster.json") == written


def test_no_file_is_no_record(tmp_path: Path):
    assert read_record(tmp_path / "cluster.json") is None


def test_a_file_that_makes_no_sense_is_named(tmp_path: Path):
    (tmp_path / "cluster.json").write_text('{"name": 3}')
    with pytest.raises(ClusterError, match=r"cluster\.json is not a record"):
        read_record(tmp_path / "cluster.json")


def test_a_restarted_component_keeps_its_place():
    restarted = record("etcd", "kwok").with_component(running("etcd", pid=8))
    assert [(c.name, c.process.pid) for c in restarted.components] == [("etcd", 8), ("kwok", 7)]

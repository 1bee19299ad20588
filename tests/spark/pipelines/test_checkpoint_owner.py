"""A folder of checkpoints belongs to one pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.checkpoint_owner import (
    FILE,
    Checkpoints,
    check_owner,
    claim,
    is_writable,
)


def test_a_checkpoint_of_another_pipeline_is_refused_by_name(tmp_path: Path) -> None:
    folder = f"file://{tmp_path}/checkpoints"
    claim(folder, "orders")
    claim(folder, "orders")
    check_owner(str(tmp_path / "checkpoints"), "orders")
    with pytest.raises(UserError, match="the checkpoints of the pipeline orders, not of views"):
        claim(folder, "views")


def test_checkpoints_of_a_version_without_the_file_are_taken(tmp_path: Path) -> None:
    (tmp_path / "clean" / "commits").mkdir(parents=True)
    claim(str(tmp_path), "orders")
    check_owner(str(tmp_path), "orders")


def test_a_later_format_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"format": 3, "pipeline": "orders"}')
    with pytest.raises(UserError, match="written by a later version"):
        check_owner(str(tmp_path), "orders")
    (tmp_path / FILE).write_text("{")
    with pytest.raises(UserError, match="cannot read"):
        check_owner(str(tmp_path), "orders")


def test_elsewhere_than_on_a_disk_nothing_is_looked_at() -> None:
    claim("s3://bucket/x", "orders")
    assert is_writable("s3://bucket/x")


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_writable(str(tmp_path / "a" / "b"))
    assert not is_writable(str(tmp_path / "file" / "b"))


def test_a_batch_that_has_begun_and_not_ended_is_unfinished(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path))
    assert checkpoints.unfinished("clean") is None
    offsets, commits = tmp_path / "clean" / "offsets", tmp_path / "clean" / "commits"
    for folder in (offsets, commits):
        folder.mkdir(parents=True)
    for name in ("9", "10", ".10.crc"):
        (offsets / name).touch()
    (commits / "9").touch()
    assert checkpoints.unfinished("clean") == 10
    (commits / "10").touch()
    assert checkpoints.unfinished("clean") is None
    assert Checkpoints("s3://bucket/x").unfinished("clean") is None

"""A topic that is compacted and loses what is old: `cleanup.policy=compact,delete`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.segment_deletion import delete_old_segments
from ottla.model.clock import WallMs
from tests.log.compacted_log import Compacted

HOUR = 3_600_000


def a_cleaned_log(folder: Path, policy: str) -> Compacted:
    """Two values of one key in segments of their own, compacted, then a day of silence."""
    log = Compacted(folder, cleanup_policy=policy, retention_ms=str(HOUR))
    for value in (b"old", b"new"):
        log.put((b"k", value))
        log.roll()
    log.clean()
    assert [record.value for record in log.records()] == [b"new"]
    log.now_ms = WallMs(log.now_ms + 24 * HOUR)
    return log


@pytest.mark.spec("LOG-75")
def test_with_both_policies_the_last_value_of_a_key_goes_too_when_it_is_old(tmp_path: Path) -> None:
    log = a_cleaned_log(tmp_path, "compact,delete")
    delete_old_segments(log.log, log.now_ms)
    assert log.records() == []
    assert log.log.start_offset == 2


@pytest.mark.spec("LOG-75")
def test_with_compaction_alone_it_stays_however_old(tmp_path: Path) -> None:
    log = a_cleaned_log(tmp_path, "compact")
    delete_old_segments(log.log, log.now_ms)
    assert [record.value for record in log.records()] == [b"new"]

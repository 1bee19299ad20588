"""Promises of `ottla.log.segment.segment`."""

from __future__ import annotations

import pytest

from ottla.log.segment.search import position_of
from ottla.log.segment.segment import INDEX, LOG, TIME_INDEX, TXN_INDEX, Segment, file_name
from tests.log.small_segments import DIR, disk, filled


@pytest.mark.spec("LOG-04", "LOG-06")
def test_files_are_named_by_the_base_offset_in_twenty_digits() -> None:
    assert file_name(0, LOG) == "00000000000000000000.log"
    assert file_name(368769, TIME_INDEX) == "00000000000000368769.timeindex"
    segment = Segment(disk(), DIR, 7, suffix=".cleaned")
    assert segment.files.path(TXN_INDEX) == DIR / "00000000000000000007.txnindex.cleaned"


@pytest.mark.spec("LOG-71")
def test_renaming_and_deleting_take_all_of_its_files() -> None:
    on = disk()
    segment = filled(on, [1, 1])
    segment.finish()
    on.replace(segment.files.path(TXN_INDEX), b"")
    segment.rename(".deleted")
    stem = "00000000000000000100"
    kinds = (INDEX, LOG, TIME_INDEX, TXN_INDEX)
    assert on.list(DIR) == [f"{stem}{kind}.deleted" for kind in kinds]
    assert position_of(segment, 102) > 0  # still readable under its new name
    segment.delete()
    assert on.list(DIR) == []

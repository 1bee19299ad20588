"""Promises of `ottla.log.index.sparse_index`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.index.sparse_index import OffsetIndex
from tests.fakes.forgetting_disk import ForgettingDisk

PATH = Path("/d/00000000000000368769.index")


@pytest.fixture
def disk() -> ForgettingDisk:
    disk = ForgettingDisk()
    disk.mkdir(PATH.parent)
    return disk


@pytest.mark.spec("LOG-77", "LOG-86")
def test_an_entry_is_eight_bytes_relative_offset_then_position(disk: ForgettingDisk) -> None:
    index = OffsetIndex(disk, PATH)
    index.append(3, 497)  # offset 368772 of the segment that begins at 368769
    index.write()
    assert disk.read(PATH) == bytes.fromhex("00000003 000001f1")


@pytest.mark.spec("LOG-77")
def test_a_gigabyte_of_log_needs_two_megabytes() -> None:
    assert (1 << 30) // 4_096 * OffsetIndex.ENTRY.size == 2 << 20


@pytest.mark.spec("LOG-34")
def test_entries_from_an_offset_on_can_be_dropped(disk: ForgettingDisk) -> None:
    index = OffsetIndex(disk, PATH)
    for relative in (4, 9, 12):
        index.append(relative, relative * 10)
    index.truncate_from(9)
    assert index.pairs() == [(4, 40)]

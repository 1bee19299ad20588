"""Promises of `ottla.log.dump.dump`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.dump.dump import dump
from ottla.log.dump.rows import DumpOptions
from ottla.log.files import RealDisk
from ottla.log.producers import snapshot_file
from ottla.log.producers.snapshot_file import ProducerEntry
from tests.log.dump_reader import lines

pytestmark = pytest.mark.spec("TOOL-13")


def test_producers_are_told_from_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000009.snapshot"
    entries = [ProducerEntry(7, 1, 3, 8, 4, 99, 2, -1), ProducerEntry(8, 0, -1, -1, 0, 50, 1, 6)]
    path.write_bytes(snapshot_file.encode(entries))
    assert lines(path) == [
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 99 firstSequence: 2147483647 "
        "lastSequence: 3 lastOffset: 8 offsetDelta: 4 timestamp: 99",
        "producerId: 8 producerEpoch: 0 coordinatorEpoch: 1 "
        "currentTxnFirstOffset: OptionalLong[6] lastTimestamp: 50",
    ]
    path.write_bytes(path.read_bytes()[:-1])
    assert "byte 0: snapshot has an invalid checksum" in lines(path)


@pytest.mark.parametrize("name", ["notes.txt", "leader-epoch-checkpoint", "0.log.deleted"])
def test_a_file_of_another_kind_is_not_guessed_at(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"expected one of \.log, \.index"):
        dump(tmp_path / name, RealDisk(), DumpOptions())

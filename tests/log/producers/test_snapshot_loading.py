"""Promises of `ottla.log.producers.snapshot_loading`."""

from __future__ import annotations

import pytest

from ottla.log.producers.producer_states import Marker, ProducerStates
from ottla.log.producers.snapshot_loading import (
    read_marker,
    replay_segment,
    snapshot_offsets,
    snapshot_path,
    states_at,
)
from ottla.protocol.records.batch import build
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import NewRecord
from tests.log.workbench import DIR, NOW_MS, Workbench, add


@pytest.mark.spec("LOG-92")
def test_snapshots_are_named_by_their_offset() -> None:
    assert snapshot_path(DIR, 17).name == "00000000000000000017.snapshot"
    names = [
        "00000000000000000017.snapshot",
        "x.snapshot",
        "00000000000000000003.snapshot",
        "00000000000000000003.snapshot.tmp",
    ]
    assert snapshot_offsets(names) == [3, 17]


@pytest.mark.spec("REC-37")
@pytest.mark.parametrize("kind", list(ControlType))
def test_a_marker_says_how_its_transaction_ended(kind: ControlType) -> None:
    content = build_marker(EndTxnMarker(kind, 6), producer_id=1, producer_epoch=0, timestamp=0)
    assert read_marker(content) == Marker(kind is ControlType.COMMIT, 6)


def test_control_batches_that_end_nothing_are_no_markers() -> None:
    assert read_marker(build([], control=True, transactional=True, last_offset_delta=0)) is None
    leader_change = NewRecord(b"\0\0\0\2", b"\0\0")
    assert read_marker(build([leader_change], control=True)) is None


def test_the_snapshot_at_the_start_of_the_log_knows_what_was_deleted_before_it() -> None:
    bench = Workbench()
    log = bench.create()
    add(log, b"v", producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll(NOW_MS)
    add(log, b"w")
    log.segments.remove(log.segments.first)
    states = states_at(bench.disk, bench.dir, log.segments, 2)
    assert [entry.producer_id for entry in states.entries()] == [7]


@pytest.mark.parametrize("end", range(9))
def test_state_at_any_offset_is_what_it_was_then(end: int) -> None:
    bench = Workbench()
    log = bench.create()
    for number in range(8):
        if number % 3 == 2:
            log.roll(NOW_MS)
        add(log, b"v", producer_id=number % 2, producer_epoch=0, base_sequence=number // 2)
    states = states_at(bench.disk, bench.dir, log.segments, end)
    replayed = ProducerStates()
    for segment in log.segments:
        replay_segment(replayed, segment, 0, end)
    assert states.entries() == replayed.entries()
    assert sum(state.last_sequence + 1 for state in states) == end

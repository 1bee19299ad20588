"""A repeat is known as one after a restart too, though a snapshot holds only the last batch."""

from __future__ import annotations

import pytest

from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from tests.log.workbench import NOW_MS, Workbench, batch


def produce(log: Log, sequence: int, *values: bytes, producer_id: int = 7) -> tuple[int, bool]:
    """Append one batch; its first offset, and whether it had it already."""
    content = batch(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    appended = log.append(memoryview(content), leader_epoch=0, now_ms=NOW_MS)
    return appended.first_offset, appended.duplicate


@pytest.mark.spec("TXN-08")
@pytest.mark.parametrize("segment_bytes", [200, 1_000_000])
def test_each_of_the_last_five_batches_is_known_again_after_a_restart(segment_bytes: int) -> None:
    bench = Workbench(internal_segment_bytes=segment_bytes)
    log = bench.create()
    offsets = []
    for sequence in range(8):
        offsets.append(produce(log, sequence, b"mine")[0])
        produce(log, sequence, b"another's", producer_id=8)
    log = bench.reopen(log)
    for sequence in (3, 7, 4, 5, 6):
        assert produce(log, sequence, b"mine") == (offsets[sequence], True)
    assert produce(log, 8, b"mine") == (16, False)


@pytest.mark.spec("TXN-08")
def test_an_older_repeat_is_refused_and_so_is_a_gap() -> None:
    bench = Workbench()
    log = bench.create()
    for sequence in range(8):
        produce(log, sequence, b"mine")
    log = bench.reopen(log)
    for sequence in (2, 9):
        with pytest.raises(KafkaError) as refusal:
            produce(log, sequence, b"mine")
        assert refusal.value.code is ErrorCode.out_of_order_sequence_number


def test_what_an_earlier_epoch_wrote_is_no_repeat() -> None:
    bench = Workbench()
    log = bench.create()
    produce(log, 0, b"old")
    newer = batch(b"new", producer_id=7, producer_epoch=1, base_sequence=0)
    log.append(memoryview(newer), leader_epoch=0, now_ms=NOW_MS)
    log = bench.reopen(log)
    again = log.append(memoryview(newer), leader_epoch=0, now_ms=NOW_MS)
    assert (again.first_offset, again.duplicate) == (1, True)
    with pytest.raises(KafkaError):
        produce(log, 1, b"old")

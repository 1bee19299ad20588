"""What a log says of an append and of a read."""

from __future__ import annotations

import pytest

from ottla.config.topic import TopicConfig
from ottla.log.results import Appended
from ottla.log.validate import analyse
from ottla.protocol.records.compression import Codec
from tests.log.workbench import NOW_MS, Workbench, add, batch

MANY = 1 << 20


@pytest.mark.spec("LOG-44")
def test_an_append_is_analysed_and_then_says_where_it_went() -> None:
    log = Workbench().create()
    add(log, b"before")
    sent = batch(b"a", b"b", b"c", codec=Codec.GZIP)
    analysis = analyse(sent, TopicConfig(record_validation="header"), now_ms=NOW_MS)
    assert bytes(analysis.content) == sent
    assert (analysis.header.codec, analysis.header.count) == (Codec.GZIP, 3)
    assert (analysis.header.max_timestamp, analysis.header.size) == (NOW_MS, len(sent))
    assert not analysis.needs_rewrite
    assert log.append(sent, leader_epoch=0, now_ms=NOW_MS) == Appended(
        first_offset=1,
        last_offset=3,
        append_time_ms=-1,
        log_start_offset=0,
        size=len(sent),
        count=3,
        duplicate=False,
        rolled=False,
    )


@pytest.mark.spec("LOG-43")
def test_a_read_says_in_which_segment_it_lies_and_how_far_into_it() -> None:
    log = Workbench().create()
    first = add(log, b"one", b"two")
    second = add(log, b"three")
    log.roll(NOW_MS)
    third = add(log, b"four")
    here, there, beyond = (
        log.read(at, MANY, end=log.end_offset, min_one=True) for at in (first, second, third)
    )
    assert (here.segment_base, here.position) == (0, 0)
    assert here.slice is not None and there.slice is not None
    assert there.segment_base == here.segment_base, "both in the same segment"
    assert there.position - here.position == here.slice.size - there.slice.size
    assert (beyond.segment_base, beyond.position) == (third, 0)

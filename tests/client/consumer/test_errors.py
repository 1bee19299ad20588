from __future__ import annotations

from ottla.client.consumer.errors import LogTruncated, NoOffset, OffsetOutOfRange
from ottla.model.ids import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


def test_errors_say_which_partitions_and_what_to_do() -> None:
    assert "t-0, t-1" in str(NoOffset(frozenset({TWO, ONE})))
    assert "t-0 at 7" in str(OffsetOutOfRange({ONE: 7}))
    assert "truncated to 5, below the position 9" in str(LogTruncated(ONE, 9, 5))
    for error in (NoOffset(frozenset({ONE})), OffsetOutOfRange({ONE: 7}), LogTruncated(ONE, 9, 5)):
        assert "seek first" in str(error)

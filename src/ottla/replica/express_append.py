"""The express lane of producing: one plain batch, appended and acknowledged in one step.

Owns no state. Either a batch is appended here with all that an append entails (the high watermark,
those who wait for it, the counters), or it is declined with nothing changed and `append` takes it:
followers to wait for, a flush before the acknowledgement, a queue behind another batch, a refusal.
Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import Final

from ottla.log.plain_append import DECLINED
from ottla.model.ids import Offset
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

ALL: Final = -1


def append_express(
    hosted: HostedPartitions, partition: HostedPartition, batch: memoryview, acks: int, now_ms: int
) -> Offset:
    """The first offset of the batch, which may be acknowledged at once; or DECLINED."""
    leadership = partition.leadership
    if leadership is None or partition.rewriting is not None or partition.waits_for_flush:
        return DECLINED
    if acks == ALL and (
        leadership.followers
        or partition.flushes_before_ack(leadership)
        or len(leadership.isr) < partition.min_isr(leadership)
    ):
        return DECLINED
    log = partition.log
    try:
        first = log.append_plain(batch, partition.leader_epoch, now_ms)
    except OSError as error:
        raise hosted.fail(partition, error) from None
    if first == DECLINED:
        return DECLINED
    size, count = len(batch), log.end_offset - first
    for traffic in (partition.traffic, hosted.traffic.all):
        traffic.total_produce_requests.value += 1
        traffic.bytes_in.value += size
        traffic.messages_in.value += count
    hosted.advance(partition)
    return first

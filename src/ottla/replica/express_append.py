"""The fast path of produce: one plain batch, appended and acknowledged in one step.

Owns no state. Either a batch is appended completely (with the high watermark, delayed operations
and counters), or it is declined with nothing changed and `append` handles it: followers to wait
for, a flush before the acknowledgement, a queue behind another batch, an error.
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
    for metrics in (partition.topic_metrics, hosted.topic_metrics.all):
        metrics.total_produce_requests.value += 1
        metrics.bytes_in.value += size
        metrics.messages_in.value += count
    hosted.advance(partition)
    return first

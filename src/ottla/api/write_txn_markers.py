"""WriteTxnMarkers (27): writes transaction markers to partitions led by this broker.

Sent by a coordinator on another broker, or by an administrator who aborts a hanging transaction
that its coordinator no longer has.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.markers import Codes, TransactionEnd
from ottla.coordinator.txn.state import Producer
from ottla.delay.slices import Slices, let_go, parts_of
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerId, TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 27
BATCH: Final = 4
"""Partitions that get their marker at a time; each may begin a new segment, with all its files."""


async def write_txn_markers(request: Request, ctx: Context) -> Fields:
    if not ctx.allows(Operation.ALTER, Kind.CLUSTER, CLUSTER_NAME, noted=False):
        ctx.require(Operation.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME)
    written: list[list[DeferredReply[Codes]]] = []
    slices = Slices(clock=ctx.services.broker.clock)
    async for marker in slices.of(request.markers):
        marking = TransactionEnd(
            Producer(ProducerId(marker.producer_id), marker.producer_epoch),
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        parts: list[DeferredReply[Codes]] = []
        async for topic in slices.of(marker.topics):
            async for indexes in slices.of(parts_of(topic.partition_indexes, BATCH)):
                keys = [TopicPartition(topic.name, index) for index in indexes]
                parts.append(ctx.services.txns.markers.write(marking, keys))
        written.append(parts)
    # All are appended before the first is waited for: a slow partition delays no other's marker.
    results = []
    for marker, parts in zip(request.markers, written, strict=True):
        codes: dict[TopicPartition, ErrorCode] = {}
        parts.reverse()
        async for _ in slices.of(range(len(parts))):
            codes |= await parts.pop()  # and so free what it holds
        topics = [
            _topic(topic.name, [
                _partition(index, codes[TopicPartition(topic.name, index)])
                async for index in slices.of(topic.partition_indexes)
            ])
            async for topic in slices.of(marker.topics)
        ]  # fmt: skip
        results.append({"producer_id": marker.producer_id, "topics": topics})
        await let_go(codes)
    return {"markers": results}


def _topic(name: str, partitions: list[Fields]) -> Fields:
    return {"name": name, "partitions": partitions}


def _partition(index: int, code: ErrorCode) -> Fields:
    return {"partition_index": index, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    def refused(topic: KioStruct) -> Fields:
        return _topic(topic.name, [_partition(index, code) for index in topic.partition_indexes])

    return {
        "markers": [
            {"producer_id": marker.producer_id, "topics": list(map(refused, marker.topics))}
            for marker in request.markers
        ]
    }


API = Api(KEY, "WriteTxnMarkers", range(1, 3), write_txn_markers, refuse)

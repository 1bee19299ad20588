"""WriteTxnMarkers (27): writes transaction markers to partitions led by this broker.

Sent by a coordinator on another broker, or by an administrator who aborts a hanging transaction
that its coordinator no longer has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.markers import Codes, TransactionEnd
from ottla.coordinator.txn.state import Producer
from ottla.delay.slices import Slices, sliced
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
    replies: list[list[DeferredReply[Codes]]] = []
    slices = Slices(clock=ctx.services.broker.clock)
    async for marker in slices.of(request.markers):
        marking = TransactionEnd(
            Producer(ProducerId(marker.producer_id), marker.producer_epoch),
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        parts: list[DeferredReply[Codes]] = []
        async for part in slices.of(sliced(_keys(marker), BATCH)):
            parts.append(ctx.services.txns.markers.write(marking, part))
        replies.append(parts)
    # All are appended before the first is waited for: a slow partition delays no other's marker.
    results = []
    for marker, parts in zip(request.markers, replies, strict=True):
        codes: dict[TopicPartition, ErrorCode] = {}
        async for part_written in slices.of(parts):
            codes |= await part_written
        topics = [
            _topic(topic.name, [
                (index, codes[TopicPartition(topic.name, index)])
                async for index in slices.of(topic.partition_indexes)
            ])
            for topic in marker.topics
        ]  # fmt: skip
        results.append({"producer_id": marker.producer_id, "topics": topics})
    return {"markers": results}


def _keys(marker: KioStruct) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def _topic(name: str, codes: Iterable[tuple[int, ErrorCode]]) -> Fields:
    partitions = [{"partition_index": index, "error_code": code} for index, code in codes]
    return {"name": name, "partitions": partitions}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "markers": [
            {
                "producer_id": marker.producer_id,
                "topics": [
                    _topic(topic.name, ((index, code) for index in topic.partition_indexes))
                    for topic in marker.topics
                ],
            }
            for marker in request.markers
        ]
    }


API = Api(KEY, "WriteTxnMarkers", range(1, 3), write_txn_markers, refuse)

"""TxnOffsetCommit (28): offsets that take effect when a transaction is committed.

Up to version 4 the client has added the group's partition of `__consumer_offsets` to the
transaction itself; with transactions v2, version 5, it is added here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import WRITE_TRANSACTIONS, on_group
from ottla.api.offset_commit import BATCH
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.coordinator.internal_topic_log import RecordProducer
from ottla.coordinator.txn.remote_coordinator import PartitionCheck
from ottla.coordinator.txn.state import Producer
from ottla.coordinator.txn.verification import producer_error
from ottla.delay.slices import Slices, sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.replica.transaction_verification import TransactionalBatch
from ottla.security.acl import Kind, Operation

KEY: Final = 28
FIRST_WITH_ABORTABLE: Final = 4
FIRST_THAT_ADDS: Final = 5
TXN_COORDINATOR_AWAY: Final = frozenset(
    {
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.network_exception,
    }
)
"""Errors of the *transaction* coordinator. A client would take them for errors of the group
coordinator, and look for another one: it gets COORDINATOR_LOAD_IN_PROGRESS, and retries."""
LAST_BY_LOADING: Final = 1
"""Clients up to this version do not retry COORDINATOR_LOAD_IN_PROGRESS."""


async def txn_offset_commit(request: Request, ctx: Context) -> Fields:
    codes = await _known_errors(request, ctx)
    slices = Slices()
    offsets = [
        OffsetToCommit(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
        )
        async for topic in slices.of(request.topics)
        async for partition in slices.of(topic.partitions)
        if codes[topic.name, partition.partition_index] is ErrorCode.none
    ]
    if offsets:
        try:
            committed = []
            for part in sliced(offsets, BATCH):
                committed += await _commit(request, ctx, part)
                await asyncio.sleep(0)
        except KafkaError as refusal:
            code = _code_for_version(refusal.code, ctx.call.version)
            committed = [code] * len(offsets)
        async for offset, code in slices.of(zip(offsets, committed, strict=True)):
            codes[offset.topic, offset.partition] = code
    topics = [
        _topic(topic.name, [
            _partition(index := partition.partition_index, codes[topic.name, index])
            async for partition in slices.of(topic.partitions)
        ])
        async for topic in slices.of(request.topics)
    ]  # fmt: skip
    return {"throttle_time": 0, "topics": topics}


async def _known_errors(request: Request, ctx: Context) -> dict[tuple[str, int], ErrorCode]:
    """The errors that are known before anything is committed, for each partition."""
    image = ctx.services.metadata.image
    codes = {}
    slices = Slices()
    async for topic in slices.of(request.topics):
        allowed = ctx.allows(Operation.READ, Kind.TOPIC, topic.name)
        async for partition in slices.of(topic.partitions):
            code = ErrorCode.none
            if not allowed:
                code = ErrorCode.topic_authorization_failed
            elif image.partition(TopicPartition(topic.name, partition.partition_index)) is None:
                code = ErrorCode.unknown_topic_or_partition
            codes[topic.name, partition.partition_index] = code
    return codes


async def _commit(
    request: Request, ctx: Context, offset_commits: Sequence[OffsetToCommit]
) -> list[ErrorCode]:
    txns, groups = ctx.services.txns, ctx.services.groups
    id, group_id = request.transactional_id, request.group_id
    producer = Producer(ProducerId(request.producer_id), request.producer_epoch)
    offsets_partition = TopicPartition(CONSUMER_OFFSETS, groups.partition_of(group_id))
    adds = ctx.call.version >= FIRST_THAT_ADDS
    try:
        await txns.require_partition(PartitionCheck(id, producer, offsets_partition, adds))
    except KafkaError as refusal:
        raise KafkaError(_as_group_code(refusal.code)) from None
    commit = CommitRequest(
        group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        offset_commits,
        transactional=True,
    )
    return await groups.commit(commit, RecordProducer(*producer))


def _as_group_code(code: ErrorCode) -> ErrorCode:
    return ErrorCode.coordinator_load_in_progress if code in TXN_COORDINATOR_AWAY else code


def _code_for_version(code: ErrorCode, version: int) -> ErrorCode:
    """Errors of the group coordinator are unchanged: the client looks for it again."""
    if code is ErrorCode.coordinator_load_in_progress and version <= LAST_BY_LOADING:
        return ErrorCode.coordinator_not_available
    if code in (ErrorCode.transaction_abortable, ErrorCode.producer_fenced):
        return producer_error(
            code, TransactionalBatch("", knows_abortable=version >= FIRST_WITH_ABORTABLE)
        )
    return code


def _topic(name: str, partitions: list[Fields]) -> Fields:
    return {"name": name, "partitions": partitions}


def _partition(index: int, code: ErrorCode) -> Fields:
    return {"partition_index": index, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics = [
        _topic(topic.name, [_partition(p.partition_index, code) for p in topic.partitions])
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


API = Api(
    KEY,
    "TxnOffsetCommit",
    range(0, 6),
    txn_offset_commit,
    refuse,
    needs=(WRITE_TRANSACTIONS, *on_group(Operation.READ)),
)

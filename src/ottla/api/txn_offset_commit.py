"""TxnOffsetCommit (28): offsets that count once a transaction is committed.

Up to version 4 the client has added the group's partition of `__consumer_offsets` to the
transaction itself; with transactions v2, version 5, it is added here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import WRITE_TRANSACTIONS, on_group
from ottla.api.offset_commit import BATCH
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.coordinator.internal_topic_log import Producer as Writer
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.state import Producer
from ottla.coordinator.txn.verification import said
from ottla.delay.slices import Slices, sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.replica.transaction_verification import TransactionalBatch
from ottla.security.acl import Kind, Operation

KEY: Final = 28
FIRST_WITH_ABORTABLE: Final = 4
FIRST_THAT_ADDS: Final = 5
TXN_COORDINATOR_AWAY: Final = frozenset(
    {ErrorCode.not_coordinator, ErrorCode.coordinator_not_available}
)
"""Refusals of the *transaction* coordinator. A client would take them for the group coordinator's,
which it has asked, and look for another: it hears COORDINATOR_LOAD_IN_PROGRESS, and tries again."""
LAST_BY_LOADING: Final = 1
"""Up to here a client knows COORDINATOR_LOAD_IN_PROGRESS, but not how to wait for it."""


async def txn_offset_commit(request: Request, ctx: Context) -> Fields:
    codes = await _checked(request, ctx)
    asked = [
        OffsetToCommit(
            topic.name,
            one.partition_index,
            one.committed_offset,
            one.committed_leader_epoch,
            one.committed_metadata or "",
        )
        for topic in request.topics
        for one in topic.partitions
        if codes[topic.name, one.partition_index] is ErrorCode.none
    ]
    if asked:
        try:
            committed = []
            for some in sliced(asked, BATCH):
                committed += await _commit(request, ctx, some)
                await asyncio.sleep(0)
        except KafkaError as refusal:
            code = _said(refusal.code, ctx.call.version)
            committed = [code] * len(asked)
        codes |= zip(((one.topic, one.partition) for one in asked), committed, strict=True)
    return _fields(request.topics, codes)


async def _checked(request: Request, ctx: Context) -> dict[tuple[str, int], ErrorCode]:
    """What can be said of each partition before anything is committed."""
    image = ctx.services.metadata.image
    codes = {}
    slices = Slices()
    async for topic in slices.of(request.topics):
        allowed = ctx.allows(Operation.READ, Kind.TOPIC, topic.name)
        async for one in slices.of(topic.partitions):
            code = ErrorCode.none
            if not allowed:
                code = ErrorCode.topic_authorization_failed
            elif image.partition(TopicPartition(topic.name, one.partition_index)) is None:
                code = ErrorCode.unknown_topic_or_partition
            codes[topic.name, one.partition_index] = code
    return codes


async def _commit(
    request: Request, ctx: Context, asked: Sequence[OffsetToCommit]
) -> list[ErrorCode]:
    txns, groups = ctx.services.txns, ctx.services.groups
    id, group_id = request.transactional_id, request.group_id
    who = Producer(ProducerId(request.producer_id), request.producer_epoch)
    offsets = TopicPartition(CONSUMER_OFFSETS, groups.partition_of(group_id))
    if ctx.call.version >= FIRST_THAT_ADDS:
        try:
            await txns.add(id, who, frozenset({offsets}), EPOCH_PER_TRANSACTION)
        except KafkaError as refusal:
            raise KafkaError(_as_group_code(refusal.code)) from None
    else:
        code = txns.verify(id, who, offsets)
        if code is not ErrorCode.none:
            raise KafkaError(_as_group_code(code))
    ask = CommitRequest(
        group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        asked,
        transactional=True,
    )
    return await groups.commit(ask, Writer(*who))


def _as_group_code(code: ErrorCode) -> ErrorCode:
    return ErrorCode.coordinator_load_in_progress if code in TXN_COORDINATOR_AWAY else code


def _said(code: ErrorCode, version: int) -> ErrorCode:
    """A consumer's coordinator may be found again: those refusals stay what they are."""
    if code is ErrorCode.coordinator_load_in_progress and version <= LAST_BY_LOADING:
        return ErrorCode.coordinator_not_available
    if code in (ErrorCode.transaction_abortable, ErrorCode.producer_fenced):
        return said(code, TransactionalBatch("", knows_abortable=version >= FIRST_WITH_ABORTABLE))
    return code


def _fields(topics: Iterable[Any], codes: dict[tuple[str, int], ErrorCode]) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": one.partition_index,
                        "error_code": codes[topic.name, one.partition_index],
                    }
                    for one in topic.partitions
                ],
            }
            for topic in topics
        ],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    codes = {
        (topic.name, one.partition_index): code
        for topic in request.topics
        for one in topic.partitions
    }
    return _fields(request.topics, codes)


API = Api(
    KEY,
    "TxnOffsetCommit",
    range(0, 6),
    txn_offset_commit,
    refuse,
    needs=(WRITE_TRANSACTIONS, *on_group(Operation.READ)),
)

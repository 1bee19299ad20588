"""AddPartitionsToTxn (24): adds partitions to transactions, or verifies that they were added.

Clients use versions up to 3, for one transaction. Versions from 4 on are for brokers, for several
transactions, and may only verify that a partition is part of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import acts_as_broker
from ottla.api.init_producer_id import as_supported_error
from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.state import Producer
from ottla.delay.slices import Slices, let_go, parts_of
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, ProducerId, TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 24
FIRST_WITH_FENCED: Final = 2
FIRST_BETWEEN_BROKERS: Final = 4
FIRST_WITH_ABORTABLE: Final = 5

AT_ONCE: Final = 50
"""Partitions that are looked up at a time."""

Codes: TypeAlias = dict[TopicPartition, ErrorCode]


class Adding(NamedTuple):
    """One transaction of a request."""

    id: str
    producer: Producer
    keys: list[TopicPartition]
    verify_only: bool = False


async def add_partitions_to_txn(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    if ctx.call.version < FIRST_BETWEEN_BROKERS:
        id, producer = _only(request, ctx)
        adding = Adding(id, producer, await _distinct(request.v3_and_below_topics, slices))
        added = await _start(adding, ctx, slices)
        del adding  # so that its partitions are freed with the codes
        return _to_a_client(await _by_topic(await added, slices))
    if not acts_as_broker(ctx.peer, ctx.services):
        raise KafkaError(ErrorCode.cluster_authorization_failed)
    # All are started before the first is waited for: one slow commit delays no other's.
    started: list[tuple[str, DeferredReply[Codes]]] = []
    async for transaction in slices.of(request.transactions):
        adding = await _one_of_several(transaction, slices)
        started.append((adding.id, await _start(adding, ctx, slices)))
    results = [
        {"transactional_id": id, "topic_results": await _by_topic(await added, slices)}
        async for id, added in slices.of(started)
    ]
    return {"error_code": ErrorCode.none, "results_by_transaction": results}


def add_at_once(request: Request, ctx: Context, answer: Callable[[Fields], None]) -> bool:
    """Requests of clients only: a request of a broker may have several transactions."""
    if ctx.call.version >= FIRST_BETWEEN_BROKERS:
        return False
    id, producer = _only(request, ctx)
    keys = _keys(request.v3_and_below_topics)
    bad = _bad(keys, ctx)

    def done(codes: Codes) -> None:
        answer(_to_a_client(_topics(codes)))

    if bad:
        done({key: bad.get(key, ErrorCode.operation_not_attempted) for key in keys})
    else:
        _add(Adding(id, producer, keys), ctx, done)
    return True


async def _start(adding: Adding, ctx: Context, slices: Slices) -> DeferredReply[Codes]:
    """Start to add or verify, in slices; settled with the result of each partition."""
    added: DeferredReply[Codes] = DeferredReply()
    keys = adding.keys
    if adding.verify_only:
        added.settle({key: _verify(key, adding, ctx) async for key in slices.of(keys)})
        return added
    bad: dict[TopicPartition, ErrorCode] = {}
    async for part in slices.of(parts_of(keys, AT_ONCE)):
        await slices.took(len(part))
        bad |= _bad(part, ctx)
    if bad:
        not_attempted = ErrorCode.operation_not_attempted
        added.settle({key: bad.get(key, not_attempted) async for key in slices.of(keys)})
    else:
        _add(adding, ctx, added.settle)
        await asyncio.sleep(0)
    return added


def _bad(keys: Sequence[TopicPartition], ctx: Context) -> dict[TopicPartition, ErrorCode]:
    """The partitions that cannot be added, each with its error."""
    image = ctx.services.metadata.image
    bad = dict.fromkeys(_hidden_partitions(keys, ctx), ErrorCode.topic_authorization_failed)
    unknown = [key for key in keys if key not in bad and image.partition(key) is None]
    return bad | dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition)


def _add(adding: Adding, ctx: Context, done: Callable[[Codes], object]) -> None:
    """Add all of a transaction's partitions or none; call `done` once that is committed."""
    id, producer, keys, _ = adding
    version = ctx.call.version

    def committed(code: ErrorCode) -> None:
        if code is not ErrorCode.none:
            code = as_supported_error(KafkaError(code), version >= FIRST_WITH_FENCED).code
        done(dict.fromkeys(keys, code))

    speaks = EPOCH_PER_TRANSACTION if version >= FIRST_BETWEEN_BROKERS else 0
    try:
        commit = ctx.services.txns.start_adding(id, producer, frozenset(keys), speaks)
    except KafkaError as refusal:
        committed(refusal.code)
        return
    if commit is None:
        committed(ErrorCode.none)
    else:
        commit.then(committed)


def _hidden_partitions(keys: Iterable[TopicPartition], ctx: Context) -> list[TopicPartition]:
    """Partitions that a client may not write to; for brokers, the sending broker has checked."""
    if ctx.call.version >= FIRST_BETWEEN_BROKERS:
        return []
    return [
        key
        for key in keys
        if key.topic in INTERNAL_TOPICS or not ctx.allows(Operation.WRITE, Kind.TOPIC, key.topic)
    ]


def _verify(key: TopicPartition, adding: Adding, ctx: Context) -> ErrorCode:
    code = ctx.services.txns.verify(adding.id, adding.producer, key)
    if code is ErrorCode.transaction_abortable and ctx.call.version < FIRST_WITH_ABORTABLE:
        return ErrorCode.invalid_txn_state
    return code


def _only(request: Request, ctx: Context) -> tuple[str, Producer]:
    """The transactional id of a client's request, and its producer."""
    id: str = request.v3_and_below_transactional_id
    ctx.require(Operation.WRITE, Kind.TRANSACTIONAL_ID, id)
    return id, Producer(
        ProducerId(request.v3_and_below_producer_id), request.v3_and_below_producer_epoch
    )


async def _one_of_several(transaction: KioStruct, slices: Slices) -> Adding:
    return Adding(
        transaction.transactional_id,
        Producer(ProducerId(transaction.producer_id), transaction.producer_epoch),
        await _distinct(transaction.topics, slices),
        transaction.verify_only,
    )


async def _distinct(topics: Iterable[KioStruct], slices: Slices) -> list[TopicPartition]:
    """The requested partitions, each once."""
    keys = {
        TopicPartition(topic.name, index): None
        async for topic in slices.of(topics)
        async for index in slices.of(topic.partitions)
    }
    return list(keys)


def _keys(topics: Iterable[KioStruct]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _to_a_client(topics: list[Fields]) -> Fields:
    return {"results_by_topic_v3_and_below": topics}


async def _by_topic(codes: Codes, slices: Slices) -> list[Fields]:
    topics: dict[str, list[Fields]] = {}
    async for (name, index), code in slices.of(codes.items()):
        topics.setdefault(name, []).append(_partition(index, code))
    await let_go(codes)
    return [_topic(*item) async for item in slices.of(topics.items())]


def _topics(codes: Codes) -> list[Fields]:
    topics: dict[str, list[Fields]] = {}
    for (name, index), code in codes.items():
        topics.setdefault(name, []).append(_partition(index, code))
    return [_topic(*item) for item in topics.items()]


def _topic(name: str, results: list[Fields]) -> Fields:
    return {"name": name, "results_by_partition": results}


def _partition(index: int, code: ErrorCode) -> Fields:
    return {"partition_index": index, "partition_error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    codes = dict.fromkeys(_keys(request.v3_and_below_topics or ()), code)
    return {
        "error_code": code,
        "results_by_transaction": [],
        "results_by_topic_v3_and_below": _topics(codes),
    }


API = Api(
    KEY, "AddPartitionsToTxn", range(0, 6), add_partitions_to_txn, refuse, at_once=add_at_once
)

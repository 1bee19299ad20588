"""AddPartitionsToTxn (24): adds partitions to transactions, or verifies that they were added.

Clients use versions up to 3, for one transaction. Versions from 4 on are for brokers, for several
transactions, and may only verify that a partition is part of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import acts_as_broker
from ottla.api.init_producer_id import as_supported_error
from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.state import Producer
from ottla.delay.slices import sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, ProducerId, TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 24
FIRST_WITH_FENCED: Final = 2
FIRST_BETWEEN_BROKERS: Final = 4
FIRST_WITH_ABORTABLE: Final = 5

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


class Adding(NamedTuple):
    """One transaction of a request."""

    id: str
    producer: Producer
    keys: list[TopicPartition]
    verify_only: bool = False


async def add_partitions_to_txn(request: Request, ctx: Context) -> Fields:
    if ctx.call.version < FIRST_BETWEEN_BROKERS:
        return _to_a_client(await (await _started(_only(request, ctx), ctx)))
    if not acts_as_broker(ctx.peer, ctx.services):
        raise KafkaError(ErrorCode.cluster_authorization_failed)
    # All are started before the first is waited for: one slow commit delays no other's.
    started = [(adding.id, await _started(adding, ctx)) for adding in _several(request)]
    results = [
        {"transactional_id": id, "topic_results": _topics(await added)} for id, added in started
    ]
    return {"error_code": ErrorCode.none, "results_by_transaction": results}


def add_at_once(request: Request, ctx: Context, answer: Callable[[Fields], None]) -> bool:
    """Requests of clients only: a request of a broker may have several transactions."""
    if ctx.call.version >= FIRST_BETWEEN_BROKERS:
        return False
    adding = _only(request, ctx)
    _add(adding, _bad(adding.keys, ctx), ctx, lambda codes: answer(_to_a_client(codes)))
    return True


async def _started(adding: Adding, ctx: Context) -> DeferredReply[Codes]:
    """Start to add or verify, in slices; settled with the result of each partition."""
    bad: dict[TopicPartition, ErrorCode] = {}
    if not adding.verify_only:
        for part in sliced(adding.keys):
            bad |= _bad(part, ctx)
            if len(adding.keys) > len(part):
                await asyncio.sleep(0)
    added: DeferredReply[Codes] = DeferredReply()
    _add(adding, bad, ctx, added.settle)
    await asyncio.sleep(0)
    return added


def _bad(keys: Sequence[TopicPartition], ctx: Context) -> dict[TopicPartition, ErrorCode]:
    """The partitions that cannot be added, each with its error."""
    image = ctx.services.metadata.image
    bad = dict.fromkeys(_hidden(keys, ctx), ErrorCode.topic_authorization_failed)
    unknown = [key for key in keys if key not in bad and image.partition(key) is None]
    return bad | dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition)


def _add(adding: Adding, bad: Codes, ctx: Context, on_done: Callable[[Codes], object]) -> None:
    """Add all of a transaction's partitions or none; call `on_done` once that is committed."""
    txns = ctx.services.txns
    id, producer, keys, verify_only = adding
    version = ctx.call.version
    if verify_only:
        knows = version >= FIRST_WITH_ABORTABLE
        on_done({key: _code_for_version(txns.verify(id, producer, key), knows) for key in keys})
        return
    if bad:
        on_done({key: bad.get(key, ErrorCode.operation_not_attempted) for key in keys})
        return

    def committed(code: ErrorCode) -> None:
        if code is not ErrorCode.none:
            code = as_supported_error(KafkaError(code), version >= FIRST_WITH_FENCED).code
        on_done(dict.fromkeys(keys, code))

    speaks = EPOCH_PER_TRANSACTION if version >= FIRST_BETWEEN_BROKERS else 0
    try:
        commit = txns.start_adding(id, producer, frozenset(keys), speaks)
    except KafkaError as refusal:
        committed(refusal.code)
        return
    if commit is None:
        committed(ErrorCode.none)
    else:
        commit.then(committed)


def _hidden(keys: Iterable[TopicPartition], ctx: Context) -> list[TopicPartition]:
    """Partitions that a client may not write to; for brokers, the sending broker has checked."""
    if ctx.call.version >= FIRST_BETWEEN_BROKERS:
        return []
    return [
        key
        for key in keys
        if key.topic in INTERNAL_TOPICS or not ctx.allows(Operation.WRITE, Kind.TOPIC, key.topic)
    ]


def _code_for_version(code: ErrorCode, knows_abortable: bool) -> ErrorCode:
    if code is ErrorCode.transaction_abortable and not knows_abortable:
        return ErrorCode.invalid_txn_state
    return code


def _only(request: Request, ctx: Context) -> Adding:
    id = request.v3_and_below_transactional_id
    ctx.require(Operation.WRITE, Kind.TRANSACTIONAL_ID, id)
    producer = Producer(
        ProducerId(request.v3_and_below_producer_id), request.v3_and_below_producer_epoch
    )
    return Adding(id, producer, _keys(request.v3_and_below_topics))


def _several(request: Request) -> list[Adding]:
    return [
        Adding(
            transaction.transactional_id,
            Producer(ProducerId(transaction.producer_id), transaction.producer_epoch),
            _keys(transaction.topics),
            transaction.verify_only,
        )
        for transaction in request.transactions
    ]


def _keys(topics: Iterable[KioStruct]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _to_a_client(codes: Codes) -> Fields:
    return {"results_by_topic_v3_and_below": _topics(codes)}


def _topics(codes: Codes) -> list[Fields]:
    topics: dict[str, list[Fields]] = {}
    for (name, index), code in codes.items():
        result = {"partition_index": index, "partition_error_code": code}
        topics.setdefault(name, []).append(result)
    return [{"name": name, "results_by_partition": results} for name, results in topics.items()]


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

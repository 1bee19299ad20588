"""Produce (0): record sets for partitions led by this broker. Hot: benchmarks/small_requests.py.

Advertised from version 0, because librdkafka misjudges a broker that does not, and served from 3:
older versions have message formats that are no longer written. With acks=0 there is no reply; an
error then closes the connection, so that the client notices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Final
from uuid import UUID

from ottla.api.api import Api
from ottla.api.current_leaders import CurrentLeaders
from ottla.api.fast_path.produce import remember
from ottla.api.services import Services
from ottla.api.throttling import throttle_produce, throttle_time
from ottla.delay.slices import SLICE, Slices, sliced
from ottla.log.log import Origin
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.model.tuples import new
from ottla.net.request_slot import Peer, RequestSlot
from ottla.protocol.hot import ProducedPartition, decode_produce, produce_reply
from ottla.protocol.hot.parts import Endpoint
from ottla.protocol.hot.produce_request import ProducePartition, ProduceRequest, ProduceTopic
from ottla.protocol.records.header import ATTRIBUTES_AT, HEADER_SIZE, TRANSACTIONAL_BIT
from ottla.protocol.wire import Call
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.partition_fetch import UNKNOWN_TOPIC
from ottla.replica.transaction_verification import TransactionalBatch
from ottla.security.acl import Kind, Operation
from ottla.security.authorizer import Authorizer

KEY: Final = 0
ACKS: Final = (-1, 0, 1)
BATCH: Final = 50
"""Partitions of a large request that are appended to in one piece: each may open its file."""
FIRST_WITH_ZSTD: Final = 7
FIRST_WITH_LEADERS: Final = 10
FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_ADDS: Final = 12
"""From this version on the broker adds partitions to a producer's transaction."""


def produce(call: Call, frame: memoryview, slot: RequestSlot, services: Services) -> None:
    request = decode_produce(call, frame, SLICE)
    acks, topics, size = request.acks, request.topics, len(frame)
    peer = slot.peer
    remember(call, frame, request, peer, services)
    quotas, produced_ms = services.shared.quotas, 0
    if quotas.in_force:
        produced_ms = throttle_produce(size, call, slot, services)

    def answer(outcomes: list[ProducedPartition]) -> None:
        delay_ms = produced_ms
        if acks and quotas.in_force:
            delay_ms = max(delay_ms, throttle_time(call, slot, services))
        _answer(call, slot, request, outcomes, delay_ms, services=services)

    sets = _sets(topics, acks, services)
    if services.authorizer.in_force:
        may_transact = _may_transact(sets, request, peer, services.authorizer)
        sets = _check_allowed(sets, peer, services.authorizer, may_transact=may_transact)
    services.replicas.appends.append(sets, _terms(call, request), answer)


async def produce_many(
    call: Call, frame: memoryview, slot: RequestSlot, services: Services
) -> None:
    """More partitions than are appended to in one piece: all are when this returns."""
    request = decode_produce(call, frame)
    await asyncio.sleep(0)
    slices = Slices()
    terms, peer, authorizer = _terms(call, request), slot.peer, services.authorizer
    guarded = authorizer.in_force
    sets: list[PartitionAppend] = []
    may_transact = True
    for name, topic_id, partitions in request.topics:
        for slice_ in sliced(partitions):
            some = _sets([(name, topic_id, slice_)], request.acks, services)
            if guarded and may_transact:
                may_transact = _may_transact(some, request, peer, authorizer)
            sets += some
            await slices.took(len(some))
    batches, quotas, produced_ms = sliced(sets, BATCH), services.shared.quotas, 0
    if quotas.in_force:
        produced_ms = throttle_produce(len(frame), call, slot, services)
    gathered: dict[int, list[ProducedPartition]] = {}

    def done(position: int, outcomes: list[ProducedPartition]) -> None:
        gathered[position] = outcomes
        if len(gathered) == len(batches):
            in_order = chain.from_iterable(gathered[position] for position in range(len(batches)))
            delay_ms = produced_ms
            if request.acks and quotas.in_force:
                delay_ms = max(delay_ms, throttle_time(call, slot, services))
            _answer(call, slot, request, list(in_order), delay_ms, services=services)

    for position, part in enumerate(batches):
        await asyncio.sleep(0)
        if guarded:
            part = _check_allowed(part, peer, authorizer, may_transact=may_transact)
        services.replicas.appends.append(part, terms, partial(done, position))


def _answer(
    call: Call,
    slot: RequestSlot,
    request: ProduceRequest,
    outcomes: list[ProducedPartition],
    throttle_ms: int,
    *,
    services: Services,
) -> None:
    if request.acks == 0:
        _end_without_reply(slot, outcomes)
        return
    topics: list[tuple[str | UUID, list[ProducedPartition]]] = _by_topic(request.topics, outcomes)
    endpoints: list[Endpoint] = []
    if call.version >= FIRST_WITH_LEADERS and any(outcome.error_code for outcome in outcomes):
        leaders = CurrentLeaders(services, slot.peer.listener)
        topics = [(topic, _with_leaders(topic, parts, leaders)) for topic, parts in topics]
        endpoints = leaders.endpoints
    slot.reply((produce_reply(call, topics, throttle_ms, endpoints),))


def _with_leaders(
    topic: str | UUID, outcomes: list[ProducedPartition], leaders: CurrentLeaders
) -> list[ProducedPartition]:
    """The same, with the current leader where this broker is not."""
    return [
        outcome._replace(current_leader=leaders.find(topic, outcome.index))
        if outcome.error_code is ErrorCode.not_leader_or_follower
        else outcome
        for outcome in outcomes
    ]


def _terms(call: Call, request: ProduceRequest) -> AppendOptions:
    txn = None
    if request.transactional_id is not None:
        version = call.version
        txn = TransactionalBatch(
            request.transactional_id,
            adds=version >= FIRST_THAT_ADDS,
            knows_abortable=version >= FIRST_WITH_ABORTABLE,
        )
    zstd = call.version >= FIRST_WITH_ZSTD
    return new(AppendOptions, (request.acks, request.timeout_ms, Origin.CLIENT, zstd, txn))


def _sets(
    topics: Iterable[tuple[str | None, UUID | None, Sequence[ProducePartition]]],
    acks: int,
    services: Services,
) -> list[PartitionAppend]:
    good = ErrorCode.none if acks in ACKS else ErrorCode.invalid_required_acks
    sets = []
    for name, topic_id, partitions in topics:
        code = good
        if name is None:
            name = services.metadata.image.names.get(topic_id or NO_TOPIC_ID)
            if name is None:
                name, code = UNKNOWN_TOPIC, ErrorCode.unknown_topic_id
        for index, records in partitions:
            sets.append(new(PartitionAppend, (new(TopicPartition, (name, index)), records, code)))
    return sets


def _check_allowed(
    sets: Sequence[PartitionAppend], peer: Peer, authorizer: Authorizer, *, may_transact: bool
) -> list[PartitionAppend]:
    """The same, with an error for partitions that the peer may not write to."""
    if not may_transact:
        code = ErrorCode.transactional_id_authorization_failed
        return [append._replace(refused=code) for append in sets]
    topics = {
        append.key.topic for append in sets if append.refused is not ErrorCode.unknown_topic_id
    }
    refused = {
        topic for topic in topics if not authorizer.allows(peer, Operation.WRITE, Kind.TOPIC, topic)
    }
    code = ErrorCode.topic_authorization_failed
    return [
        append._replace(refused=code) if append.key.topic in refused else append for append in sets
    ]


def _may_transact(
    sets: Sequence[PartitionAppend], request: ProduceRequest, peer: Peer, authorizer: Authorizer
) -> bool:
    """The peer must be authorized for the transactional id; transactional batches need one."""
    id = request.transactional_id
    if id is None:
        return not any(_is_transactional(append.records) for append in sets)
    return authorizer.allows(peer, Operation.WRITE, Kind.TRANSACTIONAL_ID, id)


def _is_transactional(records: memoryview | bytes | None) -> bool:
    """By the header of the first batch, which is the only one allowed."""
    if records is None or len(records) < HEADER_SIZE:
        return False
    return bool(records[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT)


def _by_topic(
    topics: Sequence[ProduceTopic], outcomes: list[ProducedPartition]
) -> list[tuple[str | UUID, list[ProducedPartition]]]:
    """Outcomes are in the order of the request's record sets."""
    if len(topics) == 1:
        name, topic_id, _ = topics[0]
        return [(name if name is not None else topic_id or NO_TOPIC_ID, outcomes)]
    produced: list[tuple[str | UUID, list[ProducedPartition]]] = []
    start = 0
    for name, topic_id, partitions in topics:
        end = start + len(partitions)
        topic = name if name is not None else topic_id or NO_TOPIC_ID
        produced.append((topic, outcomes[start:end]))
        start = end
    return produced


def _end_without_reply(slot: RequestSlot, outcomes: Sequence[ProducedPartition]) -> None:
    failed = next((o.error_code for o in outcomes if o.error_code is not ErrorCode.none), None)
    if failed is None:
        slot.reply_nothing()
    else:
        slot.close(f"Produce with acks=0 failed: {failed.name}")


API = Api(KEY, "Produce", range(3, 14), raw=produce, large=produce_many, advertised_from=0)

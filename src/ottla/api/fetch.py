"""Fetch (1): records from partitions led by this broker, for consumers and followers.

The reply has slices of segment files; their bytes never pass through this process. Hot:
benchmarks/requests.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from ottla.api.api import Api
from ottla.api.authorise import acts_as_broker
from ottla.api.current_leaders import CurrentLeaders
from ottla.api.services import Services
from ottla.api.throttling import throttle_fetch
from ottla.delay.slices import SLICE, finished, in_slices, sliced, step_through
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, TopicId, TopicPartition
from ottla.net.request_slot import Part, Peer, RequestSlot
from ottla.protocol import wire
from ottla.protocol.hot import FetchedPartition, fetch_reply, fetch_reply_in_slices
from ottla.protocol.hot.parts import Endpoint
from ottla.protocol.schema import KioMessage, KioStruct
from ottla.protocol.wire import Call
from ottla.replica.fetch.options import ISOLATIONS, FetchClient, FetchOptions
from ottla.replica.fetch.session_partition import SessionChanges
from ottla.replica.fetch_sessions import NO_SESSION, FetchInSession, FetchSessionRequest
from ottla.replica.leader import UNKNOWN_EPOCH
from ottla.replica.partition_fetch import UNKNOWN_TOPIC, PartitionFetch, PartitionFetchResult
from ottla.security.acl import Kind, Operation

KEY: Final = 1
FIRST_WITH_RACK: Final = 11
FIRST_BY_ID: Final = 13
FIRST_WITH_REPLICA_STATE: Final = 15
FIRST_WITH_LEADERS: Final = 16
LED_ELSEWHERE: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
SMALL_VALUES: Final = 2_500
"""Array elements of a request that is decoded on arrival: about 200 partitions."""
UNLIMITED: Final = 2**31 - 1
HEAD_BYTES: Final = 30
PARTITION_BYTES: Final = 42
"""Of a reply: what comes before its topics, and each of its partitions without the records."""
LONGEST_WAIT_MS: Final = 300_000
"""A request with a longer `max_wait_ms` gets an empty reply after this time."""


def fetch(call: Call, frame: memoryview, slot: RequestSlot, services: Services) -> None:
    request = wire.decode(call, frame, SMALL_VALUES)
    names, by_id = services.metadata.image.names, call.version >= FIRST_BY_ID
    partitions = list(_requested_partitions(request.topics, names, by_id))
    _serve(call, request, _session_request(call, request, partitions, services), slot, services)


async def fetch_many(call: Call, frame: memoryview, slot: RequestSlot, services: Services) -> None:
    """A request of many partitions, read in slices; its session has them afterwards."""
    await finished(wire.check_request(call, frame))
    await asyncio.sleep(0)
    request = wire.read_request(call, frame)
    await asyncio.sleep(0)
    names, by_id = services.metadata.image.names, call.version >= FIRST_BY_ID
    partitions = [
        partition
        async for partition in in_slices(_requested_partitions(request.topics, names, by_id))
    ]
    session_request = _session_request(call, request, partitions, services)
    await asyncio.sleep(0)
    _serve(call, request, session_request, slot, services)


def _session_request(
    call: Call, request: KioMessage, partitions: list[PartitionFetch], services: Services
) -> FetchSessionRequest:
    by_id = call.version >= FIRST_BY_ID
    names = services.metadata.image.names
    return FetchSessionRequest(
        session_id=request.session_id,
        epoch=request.session_epoch,
        partitions=partitions,
        forgotten=_forgotten(request.forgotten_topics_data, names, by_id),
        by_id=by_id,
        replica_id=_replica(call, request),
    )


def _serve(
    call: Call,
    request: KioMessage,
    session_request: FetchSessionRequest,
    slot: RequestSlot,
    services: Services,
) -> None:
    peer, most = slot.peer, services.config.current.fetch_max_bytes
    replica = session_request.replica_id
    if services.shared.quotas.in_force and replica < 0:
        most = min(most, _quota_bytes(call, peer, services))
    terms = _terms(call, request, replica, peer.listener, most)
    from_follower = terms.from_follower
    if from_follower and not acts_as_broker(peer, services):
        _refuse_follower(call, slot, session_request.partitions)
        return
    if from_follower:
        peer.on_large_replies()
    try:
        fetching = services.replicas.sessions.begin(
            session_request, services.broker.clock.mono_ms()
        )
    except KafkaError as refusal:
        slot.reply(_parts(fetch_reply(call, 0, refusal.code, NO_SESSION, ())))
        return
    work = _Fetch(call, slot, services, fetching, terms)
    if fetching.changes is not None:
        work.read_changes(fetching.changes)
    elif len(fetching.requests) > SLICE:
        step_through(work.in_slices())
    elif services.authorizer.in_force and not from_follower:
        work.read(*_split_by_access(fetching.requests, peer, services))
    else:
        work.read(fetching.requests, [])


class _Fetch:
    """One fetch, from the partitions of its session to the reply."""

    __slots__ = ("_call", "_fetching", "_refused", "_services", "_slot", "_terms")

    def __init__(
        self,
        call: Call,
        slot: RequestSlot,
        services: Services,
        fetching: FetchInSession,
        terms: FetchOptions,
    ) -> None:
        self._call = call
        self._slot = slot
        self._services = services
        self._fetching = fetching
        self._terms = terms
        self._refused: list[PartitionFetchResult] = []

    def in_slices(self) -> Generator[None, None, None]:
        """Authorize many partitions in slices, then read them."""
        allowed, refused = self._fetching.requests, []
        if self._services.authorizer.in_force and not self._terms.from_follower:
            allowed = []
            for part in sliced(self._fetching.requests):
                good, bad = _split_by_access(part, self._slot.peer, self._services)
                allowed += good
                refused += bad
                yield
        self.read(allowed, refused)

    def read(self, partitions: list[PartitionFetch], refused: list[PartitionFetchResult]) -> None:
        slot, services = self._slot, self._services
        self._refused = refused
        parked = services.replicas.reads.fetch(partitions, self._terms, self._answer)
        if parked is not None:
            slot.on_disconnect = parked.forget

    def read_changes(self, changes: SessionChanges) -> None:
        """Read what has changed in a follower's session."""
        now_ms, epoch = self._services.broker.clock.mono_ms(), self._terms.replica_epoch
        partitions = self._fetching.begin_changes(changes, epoch, now_ms)
        reads = self._services.replicas.reads
        parked = reads.fetch_changes(partitions, changes, self._terms, self._answer)
        if parked is not None:
            self._slot.on_disconnect = parked.forget

    def _answer(self, fetched: list[PartitionFetchResult]) -> None:
        if not self._slot.alive:
            return
        if self._refused:
            fetched = self._refused + fetched
        quotas = self._services.shared.quotas
        throttle_ms = self._throttle(fetched) if quotas.in_force else 0
        if throttle_ms:  # records that may not be sent yet: the client fetches them again
            session_id = self._fetching.session_id
            empty = fetch_reply(self._call, throttle_ms, ErrorCode.none, session_id, ())
            self._slot.reply(_parts(empty))
        elif len(fetched) > SLICE:
            step_through(self._reply_in_slices(fetched))
        else:
            self._reply(fetched)

    def _throttle(self, fetched: list[PartitionFetchResult]) -> int:
        """The throttle time; then nothing of this is sent, and its bytes are not counted."""
        if self._terms.from_follower:
            return 0
        size = _reply_bytes(fetched, in_session=self._fetching.session_id != NO_SESSION)
        return throttle_fetch(size, self._call, self._slot, self._services)

    def _reply(self, fetched: list[PartitionFetchResult]) -> None:
        call, now_ms = self._call, self._services.broker.clock.mono_ms()
        session_id, changed = self._fetching.finish(fetched, now_ms)
        endpoints: list[Endpoint] = []
        leaders = self._leaders(changed)
        if leaders is not None:
            changed = [_with_leader(result, leaders) for result in changed]
            endpoints = leaders.endpoints
        topics = _topics(changed, call.version >= FIRST_BY_ID)
        parts = fetch_reply(call, 0, ErrorCode.none, session_id, topics, endpoints=endpoints)
        self._slot.reply(_parts(parts))

    def _reply_in_slices(self, fetched: list[PartitionFetchResult]) -> Generator[None, None, None]:
        """As `_reply`, for thousands of partitions."""
        call, now_ms, session_id = self._call, self._services.broker.clock.mono_ms(), NO_SESSION
        changed: list[PartitionFetchResult] = []
        for reply_session, part in self._fetching.finish_in_slices(fetched, now_ms):
            session_id = reply_session
            changed += part
            yield
        endpoints: list[Endpoint] = []
        leaders = self._leaders(changed)
        if leaders is not None:
            shown: list[PartitionFetchResult] = []
            for some in sliced(changed):
                shown += [_with_leader(result, leaders) for result in some]
                yield
            changed, endpoints = shown, leaders.endpoints
        topics = _topics(changed, call.version >= FIRST_BY_ID)
        yield
        parts = yield from fetch_reply_in_slices(call, session_id, topics, endpoints=endpoints)
        if self._slot.alive:
            self._slot.reply(_parts(parts))

    def _leaders(self, changed: list[PartitionFetchResult]) -> CurrentLeaders | None:
        """Where leaders are, if the client is to be told of them."""
        if self._call.version >= FIRST_WITH_LEADERS and any(result.failed for result in changed):
            return CurrentLeaders(self._services, self._slot.peer.listener)
        return None


def _quota_bytes(call: Call, peer: Peer, services: Services) -> int:
    """The most bytes that a quota allows in one reply."""
    now_ms = services.broker.clock.mono_ms()
    allowed = services.shared.quotas.fetch_max_bytes(peer.principal, call.client_id, now_ms)
    return UNLIMITED if allowed is None else allowed


def _reply_bytes(fetched: Iterable[PartitionFetchResult], *, in_session: bool) -> int:
    """The size of a reply, about: Kafka's quotas count all of it, not just the records.

    In a session a partition is left out if there is nothing to say about it.
    """
    size, topics = HEAD_BYTES, set()
    for result in fetched:
        if result.size or not in_session or result.failed:
            size += PARTITION_BYTES + result.size
            topics.add(result.request.key.topic)
    return size + sum(map(len, topics))


def _refuse_follower(call: Call, slot: RequestSlot, partitions: Iterable[PartitionFetch]) -> None:
    """Before a session is created: sessions of followers may evict those of consumers."""
    refused = [
        _refusal(partition, ErrorCode.topic_authorization_failed) for partition in partitions
    ]
    topics = _topics(refused, call.version >= FIRST_BY_ID)
    slot.reply(_parts(fetch_reply(call, 0, ErrorCode.none, NO_SESSION, topics)))


def _split_by_access(
    partitions: Iterable[PartitionFetch], peer: Peer, services: Services
) -> tuple[list[PartitionFetch], list[PartitionFetchResult]]:
    """The partitions that may be read, and the errors of the others.

    An unknown topic id is refused here: its name may become known later, without authorization.
    """
    names = services.metadata.image.names
    allowed: dict[str, bool] = {}
    good: list[PartitionFetch] = []
    refused: list[PartitionFetchResult] = []
    for partition in partitions:
        if partition.key.topic is UNKNOWN_TOPIC and not partition.resolve_name(names):
            refused.append(_refusal(partition, ErrorCode.unknown_topic_id))
            continue
        topic = partition.key.topic
        if topic not in allowed:
            allowed[topic] = services.authorizer.allows(peer, Operation.READ, Kind.TOPIC, topic)
        if allowed[topic]:
            good.append(partition)
        else:
            refused.append(_refusal(partition, ErrorCode.topic_authorization_failed))
    return good, refused


def _refusal(partition: PartitionFetch, code: ErrorCode) -> PartitionFetchResult:
    return PartitionFetchResult(
        partition, FetchedPartition(partition.key.partition, code, aborted=()), 0
    )


def _with_leader(result: PartitionFetchResult, leaders: CurrentLeaders) -> PartitionFetchResult:
    """The same, with the current leader if it is not this broker."""
    if result.part.error_code not in LED_ELSEWHERE:
        return result
    key = result.request.key
    leader = leaders.find(key.topic, key.partition)
    return replace(result, part=result.part._replace(current_leader=leader))


def _parts(parts: Sequence[object]) -> Sequence[Part]:
    """The parts that are not encoded are slices of log files."""
    return cast(Sequence[Part], parts)


def _replica(call: Call, request: KioMessage) -> BrokerId:
    """The broker id of the follower; -1 for a consumer."""
    if call.version >= FIRST_WITH_REPLICA_STATE:
        return BrokerId(request.replica_state.replica_id)
    return BrokerId(request.replica_id)


def _replica_epoch(call: Call, request: KioMessage) -> BrokerEpoch:
    if call.version >= FIRST_WITH_REPLICA_STATE:
        return BrokerEpoch(request.replica_state.replica_epoch)
    return UNKNOWN_EPOCH


def _terms(
    call: Call, request: KioMessage, replica: BrokerId, listener: str, fetch_max_bytes: int
) -> FetchOptions:
    client = None
    max_bytes = min(request.max_bytes, fetch_max_bytes)
    if call.version >= FIRST_WITH_RACK and replica < 0:
        client = FetchClient(request.rack_id, listener)
    return FetchOptions(
        replica_id=replica,
        max_wait_ms=min(wire.ms(request.max_wait), LONGEST_WAIT_MS),
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=ISOLATIONS[request.isolation_level == 1],
        replica_epoch=_replica_epoch(call, request),
        client=client,
    )


def _requested_partitions(
    topics: Iterable[KioStruct], names: Mapping[TopicId, str], by_id: bool
) -> Iterator[PartitionFetch]:
    for topic in topics:
        topic_id = (topic.topic_id or NO_TOPIC_ID) if by_id else NO_TOPIC_ID
        name = names.get(topic_id, UNKNOWN_TOPIC) if by_id else topic.topic
        for part in topic.partitions:
            partition = PartitionFetch(TopicPartition(name, part.partition), topic_id)
            partition.offset = part.fetch_offset
            partition.log_start = part.log_start_offset
            partition.max_bytes = part.partition_max_bytes
            partition.leader_epoch = part.current_leader_epoch
            partition.last_fetched_epoch = part.last_fetched_epoch
            yield partition


def _forgotten(
    topics: Iterable[KioStruct], names: Mapping[TopicId, str], by_id: bool
) -> list[PartitionFetch]:
    forgotten = []
    for topic in topics:
        topic_id = (topic.topic_id or NO_TOPIC_ID) if by_id else NO_TOPIC_ID
        name = names.get(topic_id, UNKNOWN_TOPIC) if by_id else topic.topic
        forgotten += [
            PartitionFetch(TopicPartition(name, index), topic_id) for index in topic.partitions
        ]
    return forgotten


def _topics(
    fetched: Sequence[PartitionFetchResult], by_id: bool
) -> list[tuple[str | TopicId, list[FetchedPartition]]]:
    """Partitions of one topic together, in the order they were read."""
    topics: dict[str | TopicId, list[FetchedPartition]] = {}
    for result in fetched:
        name: str | TopicId = result.request.topic_id if by_id else result.request.key.topic
        topics.setdefault(name, []).append(result.part)
    return list(topics.items())


API = Api(KEY, "Fetch", range(4, 19), raw=fetch, large=fetch_many)

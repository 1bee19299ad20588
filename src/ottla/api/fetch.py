"""Fetch (1): records from partitions led here, for consumers and followers.

The reply carries slices of segment files; their bytes never pass through this process. Hot:
benchmarks/requests.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ottla.api.api import Api
from ottla.api.services import Services
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from ottla.net.slot import Part, Peer, Slot
from ottla.protocol import wire
from ottla.protocol.hot import FetchedPartition, fetch_reply
from ottla.protocol.wire import Call
from ottla.replica.fetch_sessions import NO_SESSION, Asked
from ottla.replica.read import FetchTerms, Isolation
from ottla.replica.wanted import UNKNOWN_TOPIC, Fetched, Wanted
from ottla.security.acl import Kind, Operation

KEY: Final = 1
FIRST_BY_ID: Final = 13
FIRST_WITH_REPLICA_STATE: Final = 15
LONGEST_WAIT_MS: Final = 300_000
"""Whoever asks for more hears after this that there is nothing, and may ask again."""


def fetch(call: Call, frame: memoryview, slot: Slot, services: Services) -> None:
    request = wire.decode(call, frame)
    by_id = call.version >= FIRST_BY_ID
    now_ms = services.clock.mono_ms()
    terms = _terms(call, request, services.config.current.fetch_max_bytes)
    names = services.metadata.image.names
    asked = Asked(
        session_id=request.session_id,
        epoch=request.session_epoch,
        wanted=_wanted(request.topics, names, by_id),
        forgotten=_forgotten(request.forgotten_topics_data, names, by_id),
        by_id=by_id,
        privileged=terms.from_follower,
    )
    try:
        fetching = services.replicas.sessions.begin(asked, now_ms)
    except KafkaError as refusal:
        slot.reply(_parts(fetch_reply(call, 0, refusal.code, NO_SESSION, ())))
        return

    wanted: list[Wanted] = fetching.wanted
    refused: list[Fetched] = []
    if services.authorizer.in_force and not terms.from_follower:
        wanted, refused = _parted(wanted, slot.peer, services)

    def answer(fetched: list[Fetched]) -> None:
        if slot.alive:
            if refused:
                fetched = refused + fetched
            session_id, news = fetching.finish(fetched, services.clock.mono_ms())
            topics = _topics(news, by_id)
            slot.reply(_parts(fetch_reply(call, 0, ErrorCode.none, session_id, topics)))

    if terms.from_follower and not _may_be_follower(slot, services):
        answer([_refused(want, ErrorCode.topic_authorization_failed) for want in wanted])
        return
    parked = services.replicas.reads.fetch(wanted, terms, answer)
    if parked is not None:
        slot.on_gone = parked.forget


def _may_be_follower(slot: Slot, services: Services) -> bool:
    """Brokers come through their own listener; who claims to be one elsewhere is a client."""
    peer, authorizer = slot.peer, services.authorizer
    if not peer.is_broker and peer.listener != services.identity.listeners.inter_broker:
        return False
    return not authorizer.in_force or authorizer.allows_on_cluster(peer, Operation.CLUSTER_ACTION)


def _parted(
    wanted: Iterable[Wanted], peer: Peer, services: Services
) -> tuple[list[Wanted], list[Fetched]]:
    """What may be read, and the refusals of the rest.

    A topic id that nobody knows is refused here: it must not get a name once nobody asks any more.
    """
    names = services.metadata.image.names
    allowed: dict[str, bool] = {}
    good: list[Wanted] = []
    refused: list[Fetched] = []
    for want in wanted:
        if want.key.topic == UNKNOWN_TOPIC and not want.named_by(names):
            refused.append(_refused(want, ErrorCode.unknown_topic_id))
            continue
        topic = want.key.topic
        if topic not in allowed:
            allowed[topic] = services.authorizer.allows(peer, Operation.READ, Kind.TOPIC, topic)
        if allowed[topic]:
            good.append(want)
        else:
            refused.append(_refused(want, ErrorCode.topic_authorization_failed))
    return good, refused


def _refused(want: Wanted, code: ErrorCode) -> Fetched:
    return Fetched(want, FetchedPartition(want.key.partition, code, aborted=()), 0)


def _parts(parts: Sequence[object]) -> Sequence[Part]:
    """What the encoder left as it was are the log's own slices of files."""
    return cast(Sequence[Part], parts)


def _terms(call: Call, request: Any, fetch_max_bytes: int) -> FetchTerms:
    replica = request.replica_id
    if call.version >= FIRST_WITH_REPLICA_STATE:
        replica = request.replica_state.replica_id
    return FetchTerms(
        replica_id=BrokerId(replica),
        max_wait_ms=min(wire.ms(request.max_wait), LONGEST_WAIT_MS),
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, fetch_max_bytes),
        isolation=Isolation(1 if request.isolation_level == 1 else 0),
    )


def _wanted(topics: Iterable[Any], names: Mapping[TopicId, str], by_id: bool) -> list[Wanted]:
    wanted = []
    for topic in topics:
        topic_id = (topic.topic_id or NO_TOPIC_ID) if by_id else NO_TOPIC_ID
        name = names.get(topic_id, UNKNOWN_TOPIC) if by_id else topic.topic
        for part in topic.partitions:
            want = Wanted(TopicPartition(name, part.partition), topic_id)
            want.offset = part.fetch_offset
            want.log_start = part.log_start_offset
            want.max_bytes = part.partition_max_bytes
            want.leader_epoch = part.current_leader_epoch
            want.last_fetched_epoch = part.last_fetched_epoch
            wanted.append(want)
    return wanted


def _forgotten(topics: Iterable[Any], names: Mapping[TopicId, str], by_id: bool) -> list[Wanted]:
    forgotten = []
    for topic in topics:
        topic_id = (topic.topic_id or NO_TOPIC_ID) if by_id else NO_TOPIC_ID
        name = names.get(topic_id, UNKNOWN_TOPIC) if by_id else topic.topic
        forgotten += [Wanted(TopicPartition(name, index), topic_id) for index in topic.partitions]
    return forgotten


def _topics(
    fetched: Sequence[Fetched], by_id: bool
) -> list[tuple[str | TopicId, list[FetchedPartition]]]:
    """Partitions of one topic together, in the order they were read."""
    topics: dict[str | TopicId, list[FetchedPartition]] = {}
    for one in fetched:
        name: str | TopicId = one.wanted.topic_id if by_id else one.wanted.key.topic
        topics.setdefault(name, []).append(one.part)
    return list(topics.items())


API = Api(KEY, "Fetch", range(4, 19), raw=fetch)

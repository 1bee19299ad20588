"""Incremental fetch: both sides remember the partitions, so that only changes travel.

Owns the sessions and their bounded cache. Never reads a log or a clock: the time is an argument.

A fetch belongs to one of three kinds. *Sessionless* (epoch -1) lists everything and leaves
nothing behind. *Full* (epoch 0) lists everything and asks for a session. *Incremental* names a
session and the epoch that follows its last one, and lists only what changed; its reply carries
only partitions with records, an error, or a moved high watermark or log start.

When the cache is full a session that has been idle for `EVICT_IDLE_MS` goes, or, for a follower,
the least recently used consumer's; otherwise the newcomer gets no session and fetches in full. The
same holds for the memory that partitions of all sessions take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple, TypeAlias

from ottla.delay.slices import sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, TopicId
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICT_IDLE_MS: Final = 120_000
MAX_INT32: Final = 0x7FFFFFFF
PARTITION_BYTES: Final = 512
"""What a session keeps of one partition, but for the topic's name."""

_Key: TypeAlias = tuple[str | TopicId, int]


class CachedPartition(NamedTuple):
    """The session part of one fetch request."""

    session_id: int
    epoch: int
    wanted: list[PartitionFetch]
    forgotten: list[PartitionFetch]
    by_id: bool
    """Topics are named by id (version 13 and later)."""
    privileged: bool
    """A follower asks: its session outranks a consumer's."""


class _Seen:
    """The reply a session last gave for one partition."""

    __slots__ = ("high_watermark", "log_start", "size", "wanted")

    def __init__(self, wanted: PartitionFetch) -> None:
        self.wanted = wanted
        self.size = _size(wanted)
        self.high_watermark = -1
        self.log_start = -1

    def note(self, fetched: PartitionFetchResult) -> bool:
        """Remember this reply; True when it says something the client does not know yet."""
        part = fetched.part
        news = (
            fetched.size > 0
            or fetched.failed
            or part.diverging_epoch is not None
            or part.high_watermark != self.high_watermark
            or part.log_start_offset != self.log_start
            or part.preferred_read_replica >= 0
        )
        self.high_watermark = part.high_watermark
        self.log_start = part.log_start_offset
        if fetched.failed:  # an error must be said again until it is gone
            self.high_watermark = -1
        return news


class Session:
    """The partitions of one client, in the order they will be served next."""

    __slots__ = ("by_id", "epoch", "id", "memory_bytes", "partitions", "privileged", "used_at_ms")

    def __init__(self, session_id: int, asked: CachedPartition, now_ms: int) -> None:
        self.id = session_id
        self.privileged = asked.privileged
        self.by_id = asked.by_id
        self.used_at_ms = now_ms
        self.epoch = 1
        self.memory_bytes = 0
        self.partitions: dict[_Key, _Seen] = {}

    def update(self, wanted: Iterable[PartitionFetch], forgotten: Iterable[PartitionFetch]) -> None:
        for want in wanted:
            key = _key(want)
            seen = self.partitions.get(key)
            if seen is None:
                self.partitions[key] = _Seen(want)
                self.memory_bytes += _size(want)
            else:
                seen.wanted = want
        for want in forgotten:
            seen = self.partitions.pop(_key(want), None)
            if seen is not None:
                self.memory_bytes -= seen.size

    def changed(self, fetched: Sequence[PartitionFetchResult]) -> list[PartitionFetchResult]:
        """The part of a reply worth sending; what gave data is served last next time."""
        news = []
        for one in fetched:
            key = _key(one.wanted)
            seen = self.partitions.get(key)
            if seen is None or not seen.note(one):
                continue
            news.append(one)
            if one.size > 0:
                self.partitions[key] = self.partitions.pop(key)
        return news


class FetchInSession:
    """One fetch under way: what it wants, and how its reply is cut down."""

    __slots__ = ("_asks", "_session", "wanted")

    def __init__(
        self,
        wanted: list[PartitionFetch],
        *,
        session: Session | None = None,
        asks: tuple[FetchSessions, CachedPartition] | None = None,
    ) -> None:
        self.wanted = wanted
        self._session = session
        self._asks = asks

    def finish(
        self, fetched: list[PartitionFetchResult], now_ms: int
    ) -> tuple[int, list[PartitionFetchResult]]:
        """The session id to answer with, and the partitions to answer for."""
        session_id = NO_SESSION
        news: list[PartitionFetchResult] = []
        for answered_with, some in self.finish_in_slices(fetched, now_ms):
            session_id = answered_with
            news += some
        return session_id, news

    def finish_in_slices(
        self, fetched: list[PartitionFetchResult], now_ms: int
    ) -> Iterator[tuple[int, Sequence[PartitionFetchResult]]]:
        """The same, some partitions at a time; a session hears of them as it goes."""
        session, is_new = self._session, False
        if self._asks is not None:
            sessions, asked = self._asks
            session, is_new = sessions.create(asked, now_ms), True
            if session is not None:
                for wanted in sliced(self.wanted):
                    sessions.add(session, wanted)
                    yield session.id, ()
        if session is None:
            yield NO_SESSION, fetched
            return
        for some in sliced(fetched):
            news = session.changed(some)
            yield session.id, some if is_new else news
        yield session.id, ()


class FetchSessions:
    """The broker's sessions, at most `slots` of them, least recently used first.

    Together they take at most `max_bytes` of memory; below 0: as much as they want.
    """

    def __init__(self, slots: int, dice: Random, max_bytes: int = -1) -> None:
        self.slots = slots
        self.max_bytes = max_bytes
        self.memory_bytes = 0
        self._dice = dice
        self._sessions: dict[int, Session] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(self, asked: CachedPartition, now_ms: int) -> FetchInSession:
        """Which fetch this is; raises the session errors of the protocol."""
        if asked.epoch == FINAL_EPOCH:
            self._drop(asked.session_id)
            return FetchInSession(asked.wanted)
        if asked.epoch == INITIAL_EPOCH:
            self._drop(asked.session_id)
            return FetchInSession(asked.wanted, asks=(self, asked) if asked.wanted else None)
        return self._resume(asked, now_ms)

    def _resume(self, asked: CachedPartition, now_ms: int) -> FetchInSession:
        session = self._sessions.get(asked.session_id)
        if session is None:
            raise KafkaError(ErrorCode.fetch_session_id_not_found)
        if session.epoch != asked.epoch:
            raise KafkaError(ErrorCode.invalid_fetch_session_epoch)
        if session.by_id != asked.by_id:
            raise KafkaError(ErrorCode.fetch_session_topic_id_error)
        if asked.wanted or asked.forgotten:
            self._update(session, asked)
        del self._sessions[session.id]
        if not session.partitions:
            return FetchInSession([])
        self._sessions[session.id] = session  # now the most recently used
        session.used_at_ms = now_ms
        session.epoch = asked.epoch + 1 if asked.epoch < MAX_INT32 else 1
        return FetchInSession(
            [seen.wanted for seen in session.partitions.values()], session=session
        )

    def _update(self, session: Session, asked: CachedPartition) -> None:
        before = session.memory_bytes
        session.update(asked.wanted, asked.forgotten)
        self.memory_bytes += session.memory_bytes - before
        if 0 <= self.max_bytes < self.memory_bytes and session.memory_bytes > before:
            self._drop(session.id)
            raise KafkaError(ErrorCode.fetch_session_id_not_found)  # it fetches in full from here

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.memory_bytes -= session.memory_bytes

    def create(self, asked: CachedPartition, now_ms: int) -> Session | None:
        size = sum(map(_size, asked.wanted))
        while len(self._sessions) >= self.slots or 0 <= self.max_bytes < self.memory_bytes + size:
            if not self._evict(asked.privileged, now_ms):
                return None
        session_id = self._dice.randint(1, MAX_INT32)
        while session_id in self._sessions:
            session_id = self._dice.randint(1, MAX_INT32)
        session = Session(session_id, asked, now_ms)
        self._sessions[session_id] = session
        return session

    def add(self, session: Session, wanted: Sequence[PartitionFetch]) -> None:
        """Partitions of a session that is being created; it may have been evicted meanwhile."""
        before = session.memory_bytes
        session.update(wanted, ())
        if self._sessions.get(session.id) is session:
            self.memory_bytes += session.memory_bytes - before

    def _evict(self, privileged: bool, now_ms: int) -> bool:
        for session in self._sessions.values():  # least recently used first
            idle = now_ms - session.used_at_ms > EVICT_IDLE_MS
            if idle or (privileged and not session.privileged):
                self._drop(session.id)
                self.evictions += 1
                return True
        return False


def _size(wanted: PartitionFetch) -> int:
    return PARTITION_BYTES + len(wanted.key.topic)


def _key(wanted: PartitionFetch) -> _Key:
    """By id where it has one: a topic of the same name may be another, and one may have no name
    yet that is known here."""
    topic, partition = wanted.key
    return (topic if wanted.topic_id is NO_TOPIC_ID else wanted.topic_id), partition

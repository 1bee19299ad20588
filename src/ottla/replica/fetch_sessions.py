"""Incremental fetch sessions: both sides remember the partitions, only changes are sent.

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
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, TopicId
from ottla.replica.fetch.session_partition import SessionChanges, SessionPartition, memory_bytes
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICT_IDLE_MS: Final = 120_000
MAX_INT32: Final = 0x7FFFFFFF
_Key: TypeAlias = tuple[str | TopicId, int]


class FetchSessionRequest(NamedTuple):
    """The session fields of one fetch request."""

    session_id: int
    epoch: int
    partitions: list[PartitionFetch]
    forgotten: list[PartitionFetch]
    by_id: bool
    """Topics are named by id (version 13 and later)."""
    replica_id: BrokerId
    """Of the follower that sent it, or -1."""

    @property
    def privileged(self) -> bool:
        """Sent by a follower: it may evict a consumer's session."""
        return self.replica_id >= 0


class Session:
    """The partitions of one client, in the order they will be served next."""

    __slots__ = ("by_id", "changes", "epoch", "id", "memory_bytes", "partitions", "used_at_ms")

    def __init__(self, session_id: int, request: FetchSessionRequest, now_ms: MonoMs) -> None:
        self.id = session_id
        self.changes = SessionChanges(request.replica_id) if request.privileged else None
        """Of a follower's session: the partitions that its next reply must look at."""
        self.by_id = request.by_id
        self.used_at_ms = now_ms
        self.epoch = 1
        self.memory_bytes = 0
        self.partitions: dict[_Key, SessionPartition] = {}

    @property
    def privileged(self) -> bool:
        return self.changes is not None

    def update(
        self, requests: Iterable[PartitionFetch], forgotten: Iterable[PartitionFetch]
    ) -> None:
        for request in requests:
            key = _key(request)
            cached = self.partitions.get(key)
            if cached is None:
                cached = self.partitions[key] = SessionPartition(request, self.changes)
                self.memory_bytes += cached.size
            else:
                cached.request = request
            if self.changes is not None:
                self.changes.mark(cached)
        for request in forgotten:
            cached = self.partitions.pop(_key(request), None)
            if cached is not None:
                self.memory_bytes -= cached.size
                if self.changes is not None:
                    self.changes.forget(cached)

    def take_changed(self, fetched: Sequence[PartitionFetchResult]) -> list[PartitionFetchResult]:
        """The results to send; partitions that returned data are served last next time."""
        changed = []
        for result in fetched:
            key = _key(result.request)
            cached = self.partitions.get(key)
            is_new = cached is not None and cached.record(result)
            if cached is not None and self.changes is not None:
                self.changes.finish(cached, result)
            if cached is None or not is_new:
                continue
            changed.append(result)
            if result.size > 0:
                self.partitions[key] = self.partitions.pop(key)
        return changed


class FetchInSession:
    """One fetch in progress: its partitions, and the part of its reply to send."""

    __slots__ = ("_creates", "_session", "requests")

    def __init__(
        self,
        requests: list[PartitionFetch],
        *,
        session: Session | None = None,
        creates: tuple[FetchSessions, FetchSessionRequest] | None = None,
    ) -> None:
        self.requests = requests
        self._session = session
        self._creates = creates

    @property
    def changes(self) -> SessionChanges | None:
        """If it is a follower's: of its partitions, only these are read."""
        return None if self._session is None else self._session.changes

    def begin_changes(
        self, changes: SessionChanges, broker_epoch: BrokerEpoch, now_ms: MonoMs
    ) -> list[SessionPartition]:
        """The partitions of a follower's fetch: named in the request, or changed since."""
        everything = () if self._session is None else self._session.partitions.values()
        return changes.begin(everything, broker_epoch, now_ms)

    @property
    def session_id(self) -> int:
        """Of the session it belongs to; NO_SESSION if it has none, or none yet."""
        return NO_SESSION if self._session is None else self._session.id

    def finish(
        self, fetched: list[PartitionFetchResult], now_ms: MonoMs
    ) -> tuple[int, list[PartitionFetchResult]]:
        """The session id to answer with, and the partitions to answer for."""
        if self._creates is None:
            session = self._session
            if session is None:
                return NO_SESSION, fetched
            return session.id, session.take_changed(fetched)
        session_id = NO_SESSION
        changed: list[PartitionFetchResult] = []
        for session_id_of_slice, some in self.finish_in_slices(fetched, now_ms):
            session_id = session_id_of_slice
            changed += some
        return session_id, changed

    def finish_in_slices(
        self, fetched: list[PartitionFetchResult], now_ms: MonoMs
    ) -> Iterator[tuple[int, Sequence[PartitionFetchResult]]]:
        """The same, some partitions at a time; the session is updated on the way."""
        session, is_new = self._session, False
        if self._creates is not None:
            sessions, request = self._creates
            session, is_new = sessions.create(request, now_ms), True
            if session is not None:
                for requests in sliced(self.requests):
                    sessions.add(session, requests)
                    yield session.id, ()
        if session is None:
            yield NO_SESSION, fetched
            return
        for some in sliced(fetched):
            changed = session.take_changed(some)
            yield session.id, some if is_new else changed
        yield session.id, ()


class FetchSessions:
    """The broker's sessions, at most `slots` of them, least recently used first.

    Together they take at most `max_bytes` of memory; below 0: unlimited.
    """

    def __init__(self, slots: int, random: Random, max_bytes: int = -1) -> None:
        self.slots = slots
        self.max_bytes = max_bytes
        self.memory_bytes = 0
        self._random = random
        self._sessions: dict[int, Session] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(self, request: FetchSessionRequest, now_ms: MonoMs) -> FetchInSession:
        """The fetch of this request; raises the session errors of the protocol."""
        if request.epoch == FINAL_EPOCH:
            self._drop(request.session_id)
            return FetchInSession(request.partitions)
        if request.epoch == INITIAL_EPOCH:
            self._drop(request.session_id)
            return FetchInSession(
                request.partitions, creates=(self, request) if request.partitions else None
            )
        return self._resume(request, now_ms)

    def _resume(self, request: FetchSessionRequest, now_ms: MonoMs) -> FetchInSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.fetch_session_id_not_found)
        if session.epoch != request.epoch:
            raise KafkaError(ErrorCode.invalid_fetch_session_epoch)
        if session.by_id != request.by_id:
            raise KafkaError(ErrorCode.fetch_session_topic_id_error)
        if request.partitions or request.forgotten:
            self._update(session, request)
        del self._sessions[session.id]
        if not session.partitions:
            return FetchInSession([])
        self._sessions[session.id] = session  # now the most recently used
        session.used_at_ms = now_ms
        session.epoch = request.epoch + 1 if request.epoch < MAX_INT32 else 1
        if session.changes is not None:
            return FetchInSession([], session=session)
        return FetchInSession(
            [cached.request for cached in session.partitions.values()], session=session
        )

    def _update(self, session: Session, request: FetchSessionRequest) -> None:
        before = session.memory_bytes
        session.update(request.partitions, request.forgotten)
        self.memory_bytes += session.memory_bytes - before
        if 0 <= self.max_bytes < self.memory_bytes and session.memory_bytes > before:
            self._drop(session.id)
            raise KafkaError(ErrorCode.fetch_session_id_not_found)  # it fetches in full from here

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.memory_bytes -= session.memory_bytes
            if session.changes is not None:
                session.changes.close(session.partitions.values())

    def create(self, request: FetchSessionRequest, now_ms: MonoMs) -> Session | None:
        size = sum(map(memory_bytes, request.partitions))
        while len(self._sessions) >= self.slots or 0 <= self.max_bytes < self.memory_bytes + size:
            if not self._evict(request.privileged, now_ms):
                return None
        session_id = self._random.randint(1, MAX_INT32)
        while session_id in self._sessions:
            session_id = self._random.randint(1, MAX_INT32)
        session = Session(session_id, request, now_ms)
        self._sessions[session_id] = session
        return session

    def add(self, session: Session, requests: Sequence[PartitionFetch]) -> None:
        """Partitions of a session that is being created; it may have been evicted meanwhile."""
        before = session.memory_bytes
        session.update(requests, ())
        if self._sessions.get(session.id) is session:
            self.memory_bytes += session.memory_bytes - before

    def _evict(self, privileged: bool, now_ms: MonoMs) -> bool:
        for session in self._sessions.values():  # least recently used first
            idle = now_ms - session.used_at_ms > EVICT_IDLE_MS
            if idle or (privileged and not session.privileged):
                self._drop(session.id)
                self.evictions += 1
                return True
        return False


def _key(request: PartitionFetch) -> _Key:
    """By topic id if there is one: a topic of the same name may be another, and the name of an id
    may not be known yet."""
    topic, partition = request.key
    return (topic if request.topic_id is NO_TOPIC_ID else request.topic_id), partition

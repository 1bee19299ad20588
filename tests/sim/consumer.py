"""A consumer of some partitions: incremental fetch sessions, resets, and what it saw.

Owns its positions and its session. Writes a poll for every answer with records or with news of the
high watermark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import crc_ok, walk
from ottla.testing.history import Poll
from tests.fakes.committed_reader import committed
from tests.sim.book import Book
from tests.sim.client import FETCH, LIST_OFFSETS, METADATA, RETRIABLE, Client
from tests.sim.producer import ID_HEADER

EARLIEST: Final = -2
LATEST: Final = -1
FIRST_BY_ID: Final = 13
SESSION_LOST: Final = frozenset(
    {
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
    }
)


@dataclass(frozen=True, slots=True)
class Tastes:
    """How one consumer asks."""

    version: int = 12
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1 << 20
    partition_max_bytes: int = 1 << 16
    sessions: bool = True
    knows_epochs: bool = True
    rereads: float = 0.0
    """How likely it begins anew after a fetch."""
    committed: bool = False
    """Reads only what is committed."""


class Position:
    """Where one partition is read."""

    __slots__ = ("assigned", "end", "high_watermark", "known", "leader_epoch", "offset")

    def __init__(self) -> None:
        self.offset = -1  # not known yet: ask for the earliest
        self.assigned = 0
        self.leader_epoch = -1
        self.high_watermark = -1
        self.known = -1  # the offset that the session has


class Consumer:
    def __init__(
        self, client: Client, partitions: Iterable[TopicPartition], book: Book, tastes: Tastes
    ) -> None:
        self.positions = {tp: Position() for tp in partitions}
        self._client = client
        self._book = book
        self._tastes = tastes
        self._ids: dict[str, UUID] = {}
        self._session = (0, 0 if tastes.sessions else -1)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.poll()
            if self._client.dice.random() < self._tastes.rereads:
                self._begin_anew(self._client.dice.choice(list(self.positions.values())))

    async def poll(self) -> None:
        try:
            await self._find_leaders()
            await self._find_starts()
            await self._fetch()
        except OSError:
            self._forget_session()
            await self._client.back_off()

    # Leaders and starts

    async def _find_leaders(self) -> None:
        unknown = {tp.topic for tp, at in self.positions.items() if at.leader_epoch < 0}
        if not unknown:
            return
        wanted = [{"topic_id": None, "name": topic} for topic in sorted(unknown)]
        fields = {
            "topics": wanted,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        reply = await self._client.ask(METADATA, 12, fields)
        for topic in reply.topics:
            self._ids[topic.name] = topic.topic_id
            for part in topic.partitions:
                at = self.positions.get(TopicPartition(topic.name, part.partition_index))
                if at is not None and part.leader_id >= 0:
                    at.leader_epoch = part.leader_epoch
        if any(at.leader_epoch < 0 for at in self.positions.values()):
            raise ConnectionError("no leader yet")

    async def _find_starts(self) -> None:
        for tp, at in self.positions.items():
            if at.offset < 0:
                at.offset = await self.bound(tp, EARLIEST)

    async def bound(self, tp: TopicPartition, which: int) -> int:
        """The earliest or the latest offset; ConnectionError while it cannot be said."""
        fields = {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [
                {
                    "name": tp.topic,
                    "partitions": [
                        {
                            "partition_index": tp.partition,
                            "current_leader_epoch": -1,
                            "timestamp": which,
                        }
                    ],
                }
            ],
        }
        reply = await self._client.ask(LIST_OFFSETS, 7, fields)
        [[part]] = [topic.partitions for topic in reply.topics]
        if part.error_code is not ErrorCode.none:
            self._accept(tp, ErrorCode(part.error_code))
            raise ConnectionError("no offset yet")
        return int(part.offset)

    # Fetching

    async def _fetch(self) -> None:
        tastes, (session_id, epoch) = self._tastes, self._session
        asked = {tp: at for tp, at in self.positions.items() if epoch <= 0 or at.known != at.offset}
        fields = {
            "replica_id": -1,
            "max_wait": tastes.max_wait_ms,
            "min_bytes": tastes.min_bytes,
            "max_bytes": tastes.max_bytes,
            "isolation_level": int(tastes.committed),
            "session_id": session_id,
            "session_epoch": epoch,
            "topics": self._topics(asked),
            "forgotten_topics_data": [],
        }
        offsets = {tp: at.offset for tp, at in asked.items()}
        reply = await self._client.ask(FETCH, tastes.version, fields, tastes.max_wait_ms + 3_000)
        code = ErrorCode(getattr(reply, "error_code", 0))
        if code is not ErrorCode.none:
            if code not in SESSION_LOST:
                self._accept(None, code)
            self._forget_session()
            return
        for tp, offset in offsets.items():
            self.positions[tp].known = offset
        if tastes.sessions:
            session = getattr(reply, "session_id", 0)
            self._session = (session, epoch + 1) if session else (0, 0)
        for tp, part in self._parts(reply):
            self._took(tp, part)

    def _topics(self, asked: dict[TopicPartition, Position]) -> list[dict[str, Any]]:
        topics: dict[str, list[dict[str, Any]]] = {}
        for tp, at in asked.items():
            topics.setdefault(tp.topic, []).append(
                {
                    "partition": tp.partition,
                    "current_leader_epoch": at.leader_epoch if self._tastes.knows_epochs else -1,
                    "fetch_offset": at.offset,
                    "log_start_offset": -1,
                    "partition_max_bytes": self._tastes.partition_max_bytes,
                }
            )
        return [
            {"topic": name, "topic_id": self._ids[name], "partitions": parts}
            for name, parts in topics.items()
        ]

    def _parts(self, reply: Any) -> Iterator[tuple[TopicPartition, Any]]:
        names = {topic_id: name for name, topic_id in self._ids.items()}
        for topic in reply.responses:
            by_id = self._tastes.version >= FIRST_BY_ID
            name = names[topic.topic_id] if by_id else topic.topic
            for part in topic.partitions:
                yield TopicPartition(name, part.partition_index), part

    def _took(self, tp: TopicPartition, part: Any) -> None:
        at = self.positions[tp]
        code = ErrorCode(part.error_code)
        if code is ErrorCode.offset_out_of_range:
            self._begin_anew(at)
            return
        if code is not ErrorCode.none:
            self._accept(tp, code)
            at.leader_epoch = -1
            self._forget_session()
            return
        records = self._read(tp, part, at.offset)
        heard = at.high_watermark != part.high_watermark
        at.high_watermark = part.high_watermark
        if records or heard:
            self._book.write(
                Poll(
                    self._client.name,
                    str(tp),
                    at.assigned,
                    tuple(records),
                    part.high_watermark,
                    at.leader_epoch,
                    self._tastes.committed,
                    part.last_stable_offset,
                    self._book.now_ns,
                )
            )

    def _read(self, tp: TopicPartition, part: Any, start: int) -> list[tuple[int, str]]:
        """The records from `start` on; whole batches only, each with a good checksum."""
        content, at = part.records or b"", self.positions[tp]
        view = memoryview(content)
        for position, header in walk(view):
            if not crc_ok(view[position : position + header.size]):
                self._book.complain("torn", str(tp), f"a bad checksum at {header.base_offset}")
            at.offset = header.next_offset
        aborted = part.aborted_transactions or () if self._tastes.committed else ()
        kept = committed(content, [(one.producer_id, one.first_offset) for one in aborted])
        return [
            (record.offset, name_of(record.value, record.headers))
            for record in kept
            if record.offset >= start
        ]

    def _begin_anew(self, at: Position) -> None:
        at.offset = -1
        at.assigned += 1

    def _forget_session(self) -> None:
        self._session = (0, 0 if self._tastes.sessions else -1)

    def _accept(self, tp: TopicPartition | None, code: ErrorCode) -> None:
        if code not in RETRIABLE:
            self._book.complain("refusal", str(tp), f"{self._client.name}: {code!r}")


def name_of(value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> str:
    """What the producer called this record."""
    if value is not None:
        return value.split(b" ", 1)[0].decode()
    return (dict(headers)[ID_HEADER] or b"").decode()


async def read_everything(consumer: Consumer) -> None:
    """Poll until every partition was read to its high watermark."""
    while not all(
        at.offset >= at.high_watermark >= 0 and at.known >= 0 for at in consumer.positions.values()
    ):
        await consumer.poll()
        await asyncio.sleep(0)

"""A broker that answers as a test tells it to, over a real socket.

Owns: one listening socket, what was asked, and the answers. Knows enough to let a client begin:
versions, metadata, a producer id, an acknowledgement. Everything else a test scripts:

    broker.script(PRODUCE, refuse_once, SILENCE)     # the next two answers, in this order
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias
from uuid import NAMESPACE_DNS, UUID, uuid5

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import schema, wire
from ottla.protocol.records.batch import read_header
from ottla.protocol.records.record import read_records

PRODUCE: Final = 0
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
API_VERSIONS: Final = 18
INIT_PRODUCER_ID: Final = 22
OFFERED: Final = (0, 1, 3, 10, 18, 22, 24, 25, 26, 28)

SILENCE: Final = None
"""Instead of an answer: never answer."""
HANG_UP: Final = "hang up"
"""Instead of an answer: close the connection."""

Answer: TypeAlias = "wire.Fields | str | None"
Answering: TypeAlias = Callable[[Any], Any]


class Arrived(NamedTuple):
    """One batch that came in a Produce request."""

    tp: TopicPartition
    producer_id: int
    epoch: int
    sequence: int
    transactional: bool
    values: list[bytes | None]


def topic_id(name: str) -> UUID:
    return uuid5(NAMESPACE_DNS, name)


class ScriptedBroker:
    """One broker, the leader of everything."""

    def __init__(self, id: int = 0, topics: dict[str, int] | None = None) -> None:
        self.id = id
        self.topics = {"t": 1} if topics is None else topics
        self.leader = id
        self.others: dict[int, ScriptedBroker] = {}
        self.versions = {
            key: (schema.versions(key)[0], schema.versions(key)[-1]) for key in OFFERED
        }
        self.features: dict[str, int] = {}
        self.asked: list[tuple[int, int, Any]] = []
        self.arrived: list[Arrived] = []
        self.ends: dict[TopicPartition, int] = {}
        self.connections = 0
        self._script: dict[int, deque[Answer | Answering]] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._held: asyncio.Event | None = None
        self._held_key = PRODUCE

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        if self._held is not None:
            self.release()
        self.hang_up()
        while self._writers:  # noqa: ASYNC110 - until those who serve them have noticed
            await asyncio.sleep(0)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def hang_up(self) -> None:
        """Close every connection there is."""
        for writer in self._writers:
            writer.transport.abort()

    def script(self, key: int, *answers: Answer | Answering) -> None:
        """The next answers to an API: fields, what to do instead, or a function of the request."""
        self._script.setdefault(key, deque()).extend(answers)

    def hold(self, key: int = PRODUCE) -> None:
        """Answer no request of this API until `release`."""
        self._held, self._held_key = asyncio.Event(), key

    def release(self) -> None:
        assert self._held is not None
        self._held.set()
        self._held = None

    def count(self, key: int) -> int:
        """How often an API was asked."""
        return sum(asked == key for asked, _, _ in self.asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = memoryview(await reader.readexactly(size))
                call = wire.parse_call(frame)
                answer = await self._answer(call, frame)
                if answer is HANG_UP:
                    return
                if isinstance(answer, bytes):
                    writer.write(answer)
                elif answer is not SILENCE:
                    assert not isinstance(answer, str)
                    writer.write(wire.reply(call, answer))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, call: wire.Call, frame: memoryview) -> Any:
        request = wire.decode(call, frame)
        self.asked.append((call.key, call.version, request))
        if self._held is not None and call.key == self._held_key:
            await self._held.wait()
        scripted = self._script.get(call.key)
        if scripted:
            answer = scripted.popleft()
            answer = answer(request) if callable(answer) else answer
            if answer is not Ellipsis:
                return answer
        return self._usual(call, request)

    def _usual(self, call: wire.Call, request: Any) -> Answer:
        match call.key:
            case 18:
                return self._api_versions()
            case 3:
                return self._metadata(request)
            case 10:
                return self._coordinator(request)
            case 22:
                return {"error_code": 0, "producer_id": 5, "producer_epoch": 0}
            case 0:
                acks: int = request.acks
                answer = self.take(request)
                return answer if acks else SILENCE
        return {"error_code": ErrorCode.none}

    def _api_versions(self) -> wire.Fields:
        return {
            "error_code": 0,
            "api_keys": [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, (low, high) in self.versions.items()
            ],
            "finalized_features_epoch": 1,
            "finalized_features": [
                {"name": name, "max_version_level": level, "min_version_level": level}
                for name, level in self.features.items()
            ],
        }

    def _metadata(self, request: Any) -> wire.Fields:
        asked = None if request.topics is None else [each.name for each in request.topics]
        names = self.topics if asked is None else asked
        brokers = {self.id: self, **self.others}
        return {
            "brokers": [
                {"node_id": id, "host": "127.0.0.1", "port": each.port, "rack": None}
                for id, each in brokers.items()
            ],
            "cluster_id": "scripted",
            "controller_id": self.id,
            "topics": [self._topic(name) for name in names],
            "error_code": 0,
            "cluster_authorized_operations": 0,
        }

    def _topic(self, name: str) -> wire.Fields:
        known = name in self.topics
        return {
            "error_code": ErrorCode.none if known else ErrorCode.unknown_topic_or_partition,
            "name": name,
            "topic_id": topic_id(name),
            "partitions": [
                {
                    "error_code": 0, "partition_index": index, "leader_id": self.leader,
                    "leader_epoch": 0, "replica_nodes": [self.id], "isr_nodes": [self.id],
                }
                for index in range(self.topics.get(name, 0))
            ],
        }  # fmt: skip

    def _coordinator(self, request: Any) -> wire.Fields:
        where = {"node_id": self.id, "host": "127.0.0.1", "port": self.port, "error_code": 0,
                 "error_message": None}  # fmt: skip
        keys = request.coordinator_keys or [request.key]
        return {**where, "coordinators": [{**where, "key": key} for key in keys]}

    def take(self, request: Any) -> wire.Fields:
        """Keep what a Produce request brings, and acknowledge it."""
        return self.produce_reply(request, lambda tp, batch: {"base_offset": self._keep(tp, batch)})

    def refuse(self, code: ErrorCode, **more: Any) -> Answering:
        """An answer that refuses every batch of a Produce request."""
        return lambda request: self.produce_reply(
            request, lambda tp, batch: {"error_code": code, "base_offset": -1, **more}
        )

    def produce_reply(
        self, request: Any, each: Callable[[TopicPartition, bytes], wire.Fields]
    ) -> wire.Fields:
        names = {topic_id(name): name for name in self.topics}
        responses = []
        for topic in request.topic_data:
            name = topic.name or names[topic.topic_id]
            responses.append(
                {
                    "name": name,
                    "topic_id": topic_id(name),
                    "partition_responses": [
                        {
                            "index": part.index, "error_code": 0, "base_offset": 0,
                            "log_append_time": -1, "log_start_offset": 0, "record_errors": [],
                            **each(TopicPartition(name, part.index), _joined(part.records)),
                        }
                        for part in topic.partition_data
                    ],
                }
            )  # fmt: skip
        return {"responses": responses}

    def _keep(self, tp: TopicPartition, batch: bytes) -> int:
        header = read_header(batch)
        values = [record.value for record in read_records(batch)]
        self.arrived.append(
            Arrived(
                tp, header.producer_id, header.producer_epoch, header.base_sequence,
                header.is_transactional, values,
            )
        )  # fmt: skip
        start = self.ends.get(tp, 0)
        self.ends[tp] = start + header.count
        return start


def _joined(records: bytes | Iterable[bytes] | None) -> bytes:
    assert records is not None
    return records if isinstance(records, bytes) else b"".join(records)

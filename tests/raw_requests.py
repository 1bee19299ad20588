"""Single requests over a plain socket, as no client library would send them.

Owns: one connection, and frames with their sizes. Never: retries, or knows what an answer means.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22

NOW_MS: Final = WallMs(1_700_000_000_000)
_numbers: Final = itertools.count(1)


class Line:
    """One connection to a broker."""

    def __init__(self, address: str, timeout_s: float = 20.0) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """These bytes, as they are."""
        self.socket.sendall(data)

    def receive(self) -> bytes | None:
        """One reply without its size; None when the broker has closed the connection."""
        head = self._exactly(4)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def send_request(self, key: int, version: int, /, **fields: Any) -> None:
        """One request, whose reply may come later."""
        self.send(wire.encode_request(key, version, next(_numbers), "asking", fields))

    def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        """One request and its decoded reply."""
        self.send_request(key, version, **fields)
        reply = self.receive()
        assert reply is not None, f"api {key} v{version}: the connection was closed"
        return wire.decode_reply(key, version, memoryview(reply))

    def is_closed(self) -> bool:
        """Wait for the broker's next word: True when it is the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                some = self.socket.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not some:
                return None
            data += some
        return bytes(data)


def batch(*values: str, **header: Any) -> bytes:
    """A record batch as a client builds it."""
    stamp = header.pop("timestamp", NOW_MS)
    return build([NewRecord(b"key", value.encode(), (), stamp) for value in values], **header)


def produce_fields(
    topic: str, records: bytes | None, *, acks: int = -1, partition: int = 0
) -> dict[str, Any]:
    """A Produce request for one partition of one topic."""
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": 10_000,
        "topic_data": [
            {"name": topic, "partition_data": [{"index": partition, "records": records}]},
        ],
    }


def produced(line: Line, topic: str, records: bytes | None, *, version: int = 9) -> Any:
    """What a Produce says of partition 0."""
    reply = line.ask(PRODUCE, version, **produce_fields(topic, records))
    return reply.responses[0].partition_responses[0]


def create_topics(line: Line, names: Sequence[str], partitions: int = 1, **settings: str) -> None:
    """New topics with one replica; each must succeed."""
    configs = [{"name": k.replace("_", "."), "value": v} for k, v in settings.items()]
    topics = [
        {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "assignments": [],
            "configs": configs,
        }
        for name in names
    ]
    reply = line.ask(CREATE_TOPICS, 7, topics=topics, timeout=30_000, validate_only=False)
    assert {topic.error_code for topic in reply.topics} == {ErrorCode.none}, reply


def fetch_fields(topic: str, offset: int = 0, **partition: Any) -> dict[str, Any]:
    """A Fetch of partition 0 of one topic, by name and outside a session."""
    return {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": 0,
                        "current_leader_epoch": -1,
                        "fetch_offset": offset,
                        "last_fetched_epoch": -1,
                        "log_start_offset": -1,
                        "partition_max_bytes": 1 << 20,
                        **partition,
                    }
                ],
            }
        ],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def fetched(line: Line, topic: str, offset: int = 0, **partition: Any) -> Any:
    """What a Fetch says of partition 0."""
    reply = line.ask(FETCH, 12, **fetch_fields(topic, offset, **partition))
    return reply.responses[0].partitions[0]

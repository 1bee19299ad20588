"""What a client is asked to do in these tests, whoever wrote it.

Owns: the questions, and the words for their answers. One adapter for each client answers them with
that client's own API and nothing else.
Never: judges; `test_every_client` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from tests.interop.series import Series


class Fault(Enum):
    """A mistake a client is made to make; the value is Kafka's code for it."""

    TOO_LARGE = 10
    UNKNOWN_TOPIC = 3
    OUT_OF_RANGE = 1
    BAD_NAME = 17


class Refusal(NamedTuple):
    """How a client told its user: by which exception, for which of Kafka's codes."""

    exception: str
    code: int


class Found(NamedTuple):
    """What a client read: how many records, and their digest."""

    records: int
    digest: str


class Position(Enum):
    """Places in a log that ListOffsets knows by name."""

    EARLIEST = -2
    LATEST = -1
    MAX_TIMESTAMP = -3


class Client(Protocol):
    """One client library or program, and how it words each refusal."""

    name: str
    stamps: bool  # can give records their own timestamps
    cannot: Mapping[str, str]  # the tests it has no means for, and why
    refusals: Mapping[Fault, str]

    def __init__(self, bootstrap: str) -> None: ...
    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None: ...
    def partition_count(self, topic: str) -> int: ...
    def add_partitions(self, topic: str, total: int) -> None: ...
    def settings(self, topic: str) -> Mapping[str, str]: ...
    def alter(self, topic: str, changes: Mapping[str, str]) -> None: ...
    def delete_topic(self, topic: str) -> None: ...
    def delete_records(self, topic: str, before: int) -> None: ...
    def produce(self, topic: str, series: Series, codec: str) -> None: ...
    def read(self, topic: str, count: int, *, stamped: bool) -> Found: ...
    def offset_at(self, topic: str, place: Position | int) -> int | None: ...
    def provoke(self, fault: Fault, topic: str) -> Refusal: ...
    def close(self) -> None: ...

"""A client of several brokers: each request goes to the leader, the coordinator, or any broker.

Owns one connection per broker, and what it has learnt of leaders and coordinators. What a broker
refuses, or does not answer, is forgotten and looked up again. Never decides what a reply means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.sasl.client import ClientLogin
from tests.sim.broker import PORT
from tests.sim.client import (
    DELETE_RECORDS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Client,
)

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
ADD_PARTITIONS: Final = 24
END_TXN: Final = 26
GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators."""
BROKERS: Final = (1, 2, 3)
LISTS: Final = (
    "responses",
    "partition_responses",
    "partitions",
    "topics",
    "groups",
    "results",
    "results_by_topic_v3_and_below",
    "results_by_partition",
)
"""Where replies list what has a code of its own."""
LOOKUP_MS: Final = 1_000


def host_of(broker: int) -> str:
    return f"broker{broker}"


class RoutedClient(Client):
    several_brokers = True
    bootstrap = ",".join(f"{host_of(broker)}:{PORT}" for broker in BROKERS)

    def __init__(
        self,
        name: str,
        clock: Clock,
        dice: Random,
        login: ClientLogin | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, clock, dice, login, options)
        self._links = {broker: self.connection(host_of(broker), PORT) for broker in BROKERS}
        self._leaders: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._fetching: TopicPartition | None = None
        self._any = dice.choice(BROKERS)

    async def ask(
        self, key: int, version: int, fields: Mapping[str, Any], timeout_ms: int = 5_000
    ) -> Any:
        tp, coordinator = self._partition(key, fields), _coordinator(key, fields)
        try:
            if tp is not None:
                broker = await self._leader(tp)
            elif coordinator is not None:
                broker = await self._coordinator(coordinator)
            else:
                broker = self._any
            reply = await self._call(self._links[broker], (key, version), fields, timeout_ms)
        except OSError:
            self._forget(tp, coordinator)
            raise
        if any(code != ErrorCode.none for code in _codes(reply)):
            self._forget(tp, coordinator)
        return reply

    async def ask_broker(
        self, broker: int, key: int, version: int, fields: Mapping[str, Any]
    ) -> Any:
        return await self._call(self._links[broker], (key, version), fields, 5_000)

    def _forget(self, tp: TopicPartition | None, coordinator: tuple[int, str] | None) -> None:
        if tp is not None:
            self._leaders.pop(tp, None)
        if coordinator is not None:
            self._coordinators.pop(coordinator, None)
        self._any = self.dice.choice(BROKERS)

    async def _leader(self, tp: TopicPartition) -> int:
        if tp not in self._leaders:
            fields = {
                "topics": [{"topic_id": None, "name": tp.topic}],
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": False,
            }
            link = self._links[self._any]
            reply = await self._call(link, (METADATA, 12), fields, LOOKUP_MS)
            for topic in reply.topics:
                for part in topic.partitions:
                    if part.leader_id >= 0:
                        where = TopicPartition(topic.name, part.partition_index)
                        self._leaders[where] = part.leader_id
        if tp not in self._leaders:
            raise ConnectionError(f"{tp} has no leader")
        return self._leaders[tp]

    async def _coordinator(self, which: tuple[int, str]) -> int:
        if which not in self._coordinators:
            kind, name = which
            fields = {"key_type": kind, "coordinator_keys": [name]}
            link = self._links[self._any]
            reply = await self._call(link, (FIND_COORDINATOR, 4), fields, LOOKUP_MS)
            [found] = reply.coordinators
            if found.error_code != ErrorCode.none:
                raise ConnectionError(f"{name} has no coordinator: {found.error_code!r}")
            self._coordinators[which] = found.node_id
        return self._coordinators[which]

    def _partition(self, key: int, fields: Mapping[str, Any]) -> TopicPartition | None:
        """The partition whose leader is asked; clients of this kind ask for one at a time."""
        if key == PRODUCE:
            [topic] = fields["topic_data"]
            return TopicPartition(topic["name"], topic["partition_data"][0]["index"])
        if key == FETCH:
            for topic in fields["topics"]:  # none in a session that has not changed
                index = topic["partitions"][0]["partition"]
                self._fetching = TopicPartition(topic["topic"], index)
            return self._fetching
        if key in (LIST_OFFSETS, DELETE_RECORDS):
            [topic] = fields["topics"]
            return TopicPartition(topic["name"], topic["partitions"][0]["partition_index"])
        return None


def _coordinator(key: int, fields: Mapping[str, Any]) -> tuple[int, str] | None:
    if key == OFFSET_FETCH:
        return GROUP, fields["groups"][0]["group_id"]
    if key == OFFSET_COMMIT:
        return GROUP, fields["group_id"]
    if key == ADD_PARTITIONS:
        return TRANSACTION, fields["v3_and_below_transactional_id"]
    if key in (INIT_PRODUCER_ID, END_TXN) and fields["transactional_id"] is not None:
        return TRANSACTION, fields["transactional_id"]
    return None


def _codes(reply: Any) -> Iterator[int]:
    """Every error code in a reply, of itself and of what it lists."""
    present: Mapping[str, Any] = getattr(type(reply), "__dataclass_fields__", {})
    for name in ("error_code", "partition_error_code"):
        if name in present:
            yield getattr(reply, name)
    for name in LISTS:
        listed = getattr(reply, name) if name in present else None
        if isinstance(listed, tuple | list):
            for item in listed:
                if not isinstance(item, int):
                    yield from _codes(item)

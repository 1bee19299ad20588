"""An administrator: makes topics, changes and deletes them, and takes records away.

Every call is repeated until it is answered; what an earlier try had done already is taken for
success.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.sim.client import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    RETRIABLE,
    Client,
)

LIST_TRANSACTIONS: Final = 66
AT_REST: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})
TOPIC: Final = 2
"""The kind of resource that topic settings belong to."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    replicas: int = 1
    assignment: tuple[int, ...] = ()
    """Of every partition; empty: the controller chooses."""

    def all(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, index) for index in range(self.partitions)]


async def create(client: Client, topic: NewTopic, deleted: Collection[UUID] = ()) -> UUID:
    """Its id. `deleted`: ids of earlier topics of that name, which a broker may still show."""
    fields = {
        "topics": [
            {
                "name": topic.name,
                "num_partitions": -1 if topic.assignment else topic.partitions,
                "replication_factor": -1 if topic.assignment else topic.replicas,
                "assignments": [
                    {"partition_index": index, "broker_ids": topic.assignment}
                    for index in (range(topic.partitions) if topic.assignment else ())
                ],
                "configs": [{"name": n, "value": v} for n, v in sorted(topic.configs.items())],
            }
        ],
        "timeout": 5_000,
        "validate_only": False,
    }
    while True:
        await _until_done(client, CREATE_TOPICS, 7, fields, ErrorCode.topic_already_exists)
        topic_id = (await topic_ids(client)).get(topic.name)
        if topic_id is not None and topic_id not in deleted:
            return topic_id
        await client.back_off()  # one of that name is still being deleted


async def delete(client: Client, topic_id: UUID) -> None:
    """By its id: a request that is late by much deletes no later topic of that name."""
    fields = {"topics": [{"name": None, "topic_id": topic_id}], "timeout": 5_000}
    await _until_done(client, DELETE_TOPICS, 6, fields, ErrorCode.unknown_topic_id)


async def add_partitions(client: Client, topic: NewTopic, count: int) -> None:
    wanted = {"name": topic.name, "count": count, "assignments": None}
    fields = {"topics": [wanted], "timeout": 5_000, "validate_only": False}
    await _until_done(client, CREATE_PARTITIONS, 3, fields, ErrorCode.invalid_partitions)


async def alter(client: Client, topic: str, configs: Mapping[str, str]) -> None:
    changes = [{"name": n, "config_operation": 0, "value": v} for n, v in sorted(configs.items())]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": changes}
    fields = {"resources": [resource], "validate_only": False}
    await _until_done(client, INCREMENTAL_ALTER_CONFIGS, 1, fields, ErrorCode.none)


async def topics(client: Client) -> set[str]:
    """The names of all that there are."""
    return set(await topic_ids(client))


async def topic_ids(client: Client) -> dict[str, UUID]:
    fields = {
        "topics": None,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    reply = await client.ask_until_answered(METADATA, 12, fields)
    return {topic.name: topic.topic_id for topic in reply.topics}


async def open_transactions(client: Client) -> dict[str, str]:
    """The state of every transactional id whose transaction has not ended; asked until told."""
    fields = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    while True:
        reply = await client.ask_until_answered(LIST_TRANSACTIONS, 1, fields)
        if reply.error_code is ErrorCode.none:
            return {
                row.transactional_id: row.transaction_state
                for row in reply.transaction_states
                if row.transaction_state not in AT_REST
            }
        assert reply.error_code is ErrorCode.coordinator_load_in_progress, reply
        await client.back_off()


async def _until_done(
    client: Client, key: int, version: int, fields: Mapping[str, Any], done_before: ErrorCode
) -> None:
    """Ask until it is done; `done_before` is what one hears when an earlier try has done it."""
    while True:
        reply = await client.ask_until_answered(key, version, fields)
        results = next(
            getattr(reply, name)
            for name in ("topics", "responses", "results")
            if hasattr(reply, name)
        )
        [result] = results
        code = ErrorCode(result.error_code)
        if code in (ErrorCode.none, done_before):
            return
        brokers_lack = client.several_brokers and code is ErrorCode.invalid_replication_factor
        assert code in RETRIABLE or brokers_lack, f"{fields}: {code!r} {result.error_message}"
        await client.back_off()


async def delete_records(client: Client, tp: TopicPartition, before: int) -> int | None:
    """The low watermark, or None when the broker could not say."""
    parts: list[dict[str, Any]] = [{"partition_index": tp.partition, "offset": before}]
    fields = {"topics": [{"name": tp.topic, "partitions": parts}], "timeout": 2_000}
    try:
        reply = await client.ask(DELETE_RECORDS, 2, fields)
    except OSError:
        return None
    [[part]] = [topic.partitions for topic in reply.topics]
    code = ErrorCode(part.error_code)
    if code is ErrorCode.none:
        return int(part.low_watermark)
    assert code in RETRIABLE | {ErrorCode.offset_out_of_range}, f"{tp}: {code!r}"
    return None

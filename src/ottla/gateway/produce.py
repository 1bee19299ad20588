"""Producing: records of a request to the shared producer, and their offsets or errors back.

Owns: the request's and the reply's fields. Never: retries; the producer does.

A record that fails has an error in its place of the reply, and the status stays 200, because others
may have been written. Only where nothing can be written at all, as of an unknown topic, the whole
request is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.client.errors import KafkaError
from ottla.client.producer.buffer.batch import RecordMetadata
from ottla.client.producer.delivery import Delivery
from ottla.gateway.errors import (
    NOT_AUTHORIZED,
    describe,
    error_code,
    invalid,
    partition_not_found,
)
from ottla.gateway.http_messages import Response, json_reply
from ottla.gateway.json_fields import JsonObject
from ottla.gateway.media_types import Format, produced_format
from ottla.gateway.record_formats import encode
from ottla.gateway.services import Call, Services
from ottla.gateway.topics import find_topic
from ottla.model.errors import AuthenticationFailed

SCHEMA_FIELDS: Final = ("key_schema", "key_schema_id", "value_schema", "value_schema_id")
"""Of formats with schemas; programs send them as null."""

NEW_TOPIC_TIMEOUT_S: Final = 5.0
"""How long a broker may take to create the topic of a record, if it does."""


class Draft(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    partition: int | None


Outcome = RecordMetadata | Exception


async def to_topic(call: Call, services: Services) -> Response:
    """POST /topics/{topic}"""
    return await _produce(call, services, None)


async def to_partition(call: Call, services: Services) -> Response:
    """POST /topics/{topic}/partitions/{partition}"""
    return await _produce(call, services, call.names.integer("partition"))


async def _produce(call: Call, services: Services, partition: int | None) -> Response:
    format = produced_format(call.content_type)
    max_records = services.limits.max_records
    records = await call.parse_body(
        services, lambda body: drafts(body, format, partition, max_records)
    )
    topic = call.names.text("topic")
    count = await _partition_count(services, topic, records)
    if partition is not None and partition >= count:
        raise partition_not_found(topic, partition)
    outcomes = await _send(services, topic, records, count)
    return json_reply(reply_fields(outcomes), call.reply_type, status_of(outcomes))


async def _partition_count(services: Services, topic: str, records: Sequence[Draft]) -> int:
    """How many partitions a topic has. The broker may create it now; if not, 40401."""
    try:
        async with asyncio.timeout(NEW_TOPIC_TIMEOUT_S):
            count = len(await services.producer.partitions_for(topic))
    except (TimeoutError, KafkaError):
        await find_topic(services, topic)
        raise
    if all(record.partition is None or record.partition < count for record in records):
        return count
    # The producer's metadata may be older than the last partition.
    return len((await find_topic(services, topic)).partitions)


async def _send(
    services: Services, topic: str, records: Sequence[Draft], count: int
) -> list[Outcome]:
    """Send all, then wait for each: they share batches."""
    deliveries: list[Delivery | Exception] = []
    for record in records:
        if record.partition is not None and record.partition >= count:
            deliveries.append(partition_not_found(topic, record.partition))
            continue
        deliveries.append(
            await services.producer.send(
                topic, record.value, record.key, partition=record.partition
            )
        )
    outcomes: list[Outcome] = []
    for delivery in deliveries:
        try:
            outcomes.append(delivery if isinstance(delivery, Exception) else await delivery)
        except (KafkaError, OSError) as error:
            outcomes.append(error)
    return outcomes


def drafts(
    body: JsonObject, format: Format, partition: int | None, max_records: int
) -> list[Draft]:
    """The records of a request; `partition` is that of its path."""
    body.allow("records", *SCHEMA_FIELDS)
    records = body.objects("records", max_records)
    if not records:
        raise invalid("records", f"1 to {max_records} records")
    return [_draft(record, format, partition) for record in records]


def _draft(record: JsonObject, format: Format, partition: int | None) -> Draft:
    record.allow("key", "value", "partition")
    own = record.integer("partition")
    if own is not None and partition is not None and own != partition:
        raise invalid(record.name("partition"), f"none, or {partition} as in the path, not {own}")
    return Draft(
        encode(record.get("key"), format, record.name("key")),
        encode(record.get("value"), format, record.name("value")),
        partition if own is None else own,
    )


def reply_fields(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """The reply: for each record partition and offset, or an error."""
    return {
        "offsets": [_offset_fields(outcome) for outcome in outcomes],
        "key_schema_id": None,
        "value_schema_id": None,
    }


def _offset_fields(outcome: Outcome) -> dict[str, object]:
    if isinstance(outcome, RecordMetadata):
        return {
            "partition": outcome.partition,
            "offset": outcome.offset,
            "error_code": None,
            "error": None,
        }
    return {
        "partition": None,
        "offset": None,
        "error_code": error_code(outcome),
        "error": describe(outcome),
    }


def status_of(outcomes: Sequence[Outcome]) -> int:
    """200 also where records failed, except for lack of a login or a permission."""
    for outcome in outcomes:
        if isinstance(outcome, AuthenticationFailed):
            return 401
        if isinstance(outcome, Exception) and error_code(outcome) == NOT_AUTHORIZED:
            return 403
    return 200

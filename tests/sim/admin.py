"""An administrator: makes topics, and takes records away again.

Every call is repeated until it is answered; what an earlier try had done already is taken for
success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.sim.client import CREATE_TOPICS, DELETE_RECORDS, RETRIABLE, Client


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def all(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, index) for index in range(self.partitions)]


async def create(client: Client, topic: NewTopic) -> None:
    fields = {
        "topics": [
            {
                "name": topic.name,
                "num_partitions": topic.partitions,
                "replication_factor": 1,
                "assignments": [],
                "configs": [{"name": n, "value": v} for n, v in sorted(topic.configs.items())],
            }
        ],
        "timeout": 5_000,
        "validate_only": False,
    }
    fine = {ErrorCode.none, ErrorCode.topic_already_exists}
    while True:
        reply = await client.ask_until_answered(CREATE_TOPICS, 7, fields)
        [result] = reply.topics
        code = ErrorCode(result.error_code)
        if code in fine:
            return
        assert code in RETRIABLE, f"{topic.name}: {code!r} {result.error_message}"
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

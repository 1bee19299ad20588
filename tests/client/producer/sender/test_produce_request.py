"""The Produce request, byte for byte, and what its reply says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.batch_encoder import Encoder
from ottla.client.producer.sender import produce_request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.protocol.hot.produce_request import FIRST_FLEXIBLE
from tests.client.producer.rig import batch, cluster, topic

VIEW = cluster(topic(200, name="one"), topic(2, name="two"))


def encoded(*values: bytes, tp: TopicPartition) -> Batch:
    made = batch(*values, tp=tp)
    Encoder("none", None).encode(made)
    return made


@pytest.mark.spec("PRD-39")
@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("name", [None, "transactional"])
def test_a_request_is_what_kio_would_write(version: int, name: str | None) -> None:
    batches = [encoded(b"x" * 300, tp=TopicPartition("one", each)) for each in range(150)]
    batches.insert(1, encoded(b"y", tp=TopicPartition("two", 1)))
    body = b"".join(produce_request.body(version, VIEW, batches, name, (-1, 1_234)))
    fields: dict[str, Any] = {
        "transactional_id": name,
        "acks": -1,
        "timeout": 1_234,
        "topic_data": [
            {
                "name": each,
                "topic_id": VIEW.topics[each].id,
                "partition_data": [
                    {"index": made.tp.partition, "records": made.encoded}
                    for made in batches
                    if made.tp.topic == each
                ],
            }
            for each in ("one", "two")
        ],
    }
    whole = wire.encode_request(produce_request.PRODUCE, version, 1, "", fields)
    assert whole.endswith(body)
    assert len(whole) - len(body) == 4 + 10 + (version >= FIRST_FLEXIBLE)


@pytest.mark.spec("PRD-40")
def test_each_batch_finds_its_answer() -> None:
    batches = [batch(tp=TopicPartition("one", each)) for each in range(3)]
    reply = SimpleNamespace(
        responses=[
            SimpleNamespace(
                name="",
                topic_id=VIEW.topics["one"].id,
                partition_responses=[
                    SimpleNamespace(
                        index=index, error_code=code, error_message="why", base_offset=40,
                        log_append_time=7, log_start_offset=3,
                        current_leader=SimpleNamespace(leader_id=leader, leader_epoch=5),
                    )
                    for index, code, leader in (
                        (2, ErrorCode.none, -1), (0, ErrorCode.not_leader_or_follower, 2)
                    )
                ],
            )
        ]
    )  # fmt: skip
    told = dict(produce_request.results(reply, batches, VIEW))
    assert told[batches[2]] == (ErrorCode.none, "why", 40, 7, 3, None)
    assert told[batches[0]].leader == (2, 5)
    assert told[batches[1]].code is ErrorCode.unknown_topic_or_partition, "not even mentioned"

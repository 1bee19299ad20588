"""Scripted brokers of both transaction protocols."""

from __future__ import annotations

from typing import Any

from ottla.client.errors import ErrorCode
from tests.fakes.scripted_broker import (
    ScriptedBroker,
)

ADD_PARTITIONS, ADD_OFFSETS, END_TXN, OFFSET_COMMIT = 24, 25, 26, 28

FIRST = {"error_code": 0, "producer_id": 5, "producer_epoch": 3}


def older() -> ScriptedBroker:
    """A broker whose transactions are announced to it."""
    broker = ScriptedBroker(topics={"t": 2})
    broker.script(ADD_PARTITIONS, *[adds_all] * 10)
    broker.script(OFFSET_COMMIT, *[commits_all] * 10)
    return broker


def newer() -> ScriptedBroker:
    """A broker that adds partitions by itself, and raises the epoch with each end (KIP-890)."""
    broker = ScriptedBroker(topics={"t": 2})
    broker.features["transaction.version"] = 2
    broker.script(END_TXN, *[{**FIRST, "producer_epoch": 4 + at} for at in range(10)])
    broker.script(OFFSET_COMMIT, *[commits_all] * 10)
    return broker


def adds_all(request: Any, code: ErrorCode = ErrorCode.none) -> dict[str, Any]:
    return {
        "results_by_topic_v3_and_below": [
            {
                "name": topic.name,
                "results_by_partition": [
                    {"partition_index": each, "partition_error_code": code}
                    for each in topic.partitions
                ],
            }
            for topic in request.v3_and_below_topics
        ]
    }


def commits_all(request: Any, code: ErrorCode = ErrorCode.none) -> dict[str, Any]:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": each.partition_index, "error_code": code}
                    for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }

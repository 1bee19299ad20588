"""Plans of where partitions should be.

Pure. A proposal spreads replicas and leaders evenly: each partition's first replica is the next
broker in turn, its others the brokers after that; a topic begins where the one before ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ottla.cli.argument_parsing import INT32_MAX, whole_value
from ottla.client.admin import Topic
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

Plan: TypeAlias = dict[TopicPartition, tuple[int, ...]]


def proposed(topics: Iterable[Topic], brokers: Sequence[int], copies: int | None = None) -> Plan:
    """Every partition of these topics, spread over these brokers."""
    plan: Plan = {}
    turn = 0
    for topic in topics:
        count = copies or topic.replication_factor
        if count > len(brokers):
            raise UserError(
                f"{topic.name}: replication factor {count} exceeds the number of brokers to choose"
                f" from ({len(brokers)}): lower it or start brokers"
            )
        for one in topic.partitions:
            chosen = [brokers[(turn + step) % len(brokers)] for step in range(count)]
            plan[TopicPartition(topic.name, one.index)] = tuple(chosen)
            turn += 1
    return plan


def current(topics: Iterable[Topic]) -> Plan:
    """Where the partitions are now: the plan that undoes a move."""
    return {
        TopicPartition(topic.name, one.index): one.replicas
        for topic in topics
        for one in topic.partitions
    }


def as_json(plan: Mapping[TopicPartition, Sequence[int]]) -> str:
    rows = [
        {"topic": one.topic, "partition": one.partition, "replicas": list(replicas)}
        for one, replicas in plan.items()
    ]
    return json.dumps({"version": 1, "partitions": rows}, indent=2)


def read(path: Path) -> Plan:
    """The plan in a file."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["partitions"]
        plan = {
            TopicPartition(str(row["topic"]), whole_value(row["partition"], most=INT32_MAX)): tuple(
                whole_value(broker, most=INT32_MAX) for broker in row["replicas"]
            )
            for row in rows
        }
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise UserError(
            f"{path}: expected JSON such as "
            '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}'
        ) from None
    for one, replicas in plan.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise UserError(f"{path}: {one}: expected different brokers, at least one")
    return plan

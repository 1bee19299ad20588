"""Checks of topic names, partition counts, replication factors and assignments.

Pure checks that raise the error for the client. Owns no state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from ottla.config.broker import BrokerConfig
from ottla.controller.events import NewTopic
from ottla.controller.state import Replicas
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerId


def automatic(name: str, config: BrokerConfig, live_brokers: int) -> NewTopic:
    """A topic that is created on first use: with defaults, unless it is an internal topic."""
    if name == CONSUMER_OFFSETS:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            min(config.offsets_topic_replication_factor, live_brokers),
            config={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE:
        copies = min(config.transaction_state_log_replication_factor, live_brokers)
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            copies,
            config={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, copies)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(name)


NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_name(name: str) -> None:
    reason = None
    if name == "":
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not _LEGAL.fullmatch(name):
        reason = (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    if reason is not None:
        raise KafkaError(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {reason}")


def metric_name(name: str) -> str:
    """The name of a topic in metrics."""
    return name.replace(".", "_")


def may_collide(name: str) -> bool:
    """Whether another name can become the same in metrics."""
    return "." in name or "_" in name


def check_collision(name: str, names: Mapping[str, str]) -> None:
    """Metrics replace dots by underscores: names that would then be equal may not both exist.

    `names` has the existing topics by their metric names.
    """
    other = names.get(metric_name(name))
    if other is not None and may_collide(name):
        raise KafkaError(
            ErrorCode.invalid_topic_exception,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def check_partition_count(count: int) -> None:
    if count < 1:
        raise KafkaError(
            ErrorCode.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        )


def check_replication_factor(factor: int) -> None:
    if factor < 1:
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )


def check_assignment(assignment: Mapping[int, Replicas], registered: Collection[BrokerId]) -> None:
    """Partitions numbered from zero, each with the same number of distinct registered brokers."""
    if sorted(assignment) != list(range(len(assignment))):
        raise KafkaError(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )
    factor = len(assignment[0])
    for number in range(len(assignment)):
        check_replicas(assignment[number], registered, factor)


def check_replicas(replicas: Replicas, registered: Collection[BrokerId], factor: int) -> None:
    reason = None
    if not replicas:
        reason = "an empty replica list"
    elif repeated := [broker for broker in replicas if replicas.count(broker) > 1]:
        reason = f"the broker {repeated[0]} more than once"
    elif unknown := [broker for broker in replicas if broker not in registered]:
        reason = f"broker {unknown[0]}, but no such broker is registered"
    elif len(replicas) != factor:
        reason = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with "
            f"previous partitions, which have {factor} replica(s)"
        )
    if reason is not None:
        raise KafkaError(
            ErrorCode.invalid_replica_assignment,
            f"The manual partition assignment includes {reason}.",
        )

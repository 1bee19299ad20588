"""How the topics that the system keeps for itself are made.

Pure. Their numbers are settings of the broker; copies are limited by the brokers there are, so that
a single node can have them too.
"""

from __future__ import annotations

from ottla.config.broker import BrokerConfig
from ottla.controller.events import NewTopic
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE


def automatic(name: str, config: BrokerConfig, live_brokers: int) -> NewTopic:
    """A topic that somebody uses before it exists: defaults, unless it is one of our own."""
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

"""The system's own topics."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.changes import check
from ottla.config.topic import TopicConfig
from ottla.controller.topic_rules import automatic
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE

CONFIG = BrokerConfig.parse({})


@pytest.mark.spec("GRP-07", "CFG-065", "CFG-066")
def test_offsets_have_fifty_compacted_partitions_and_as_many_copies_as_there_are_brokers() -> None:
    alone = automatic(CONSUMER_OFFSETS, CONFIG, 1)
    assert (alone.partition_count, alone.replication_factor) == (50, 1)
    assert alone.config["cleanup.policy"] == "compact"
    assert automatic(CONSUMER_OFFSETS, CONFIG, 5).replication_factor == 3


@pytest.mark.spec("CFG-072", "CFG-073")
def test_transaction_states_need_no_more_in_sync_copies_than_there_are() -> None:
    assert automatic(TRANSACTION_STATE, CONFIG, 1).config["min.insync.replicas"] == "1"
    assert automatic(TRANSACTION_STATE, CONFIG, 3).config["min.insync.replicas"] == "2"


@pytest.mark.spec("TXN-21", "TXN-27")
def test_transaction_states_are_compacted_uncompressed_and_never_elected_uncleanly() -> None:
    topic = automatic(TRANSACTION_STATE, CONFIG, 3)
    assert (topic.partition_count, topic.replication_factor) == (50, 3)
    assert topic.config["cleanup.policy"] == "compact"
    assert topic.config["compression.type"] == "uncompressed"
    assert topic.config["unclean.leader.election.enable"] == "false"


def test_any_other_topic_takes_the_defaults() -> None:
    topic = automatic("orders", CONFIG, 3)
    assert (topic.partition_count, topic.replication_factor, topic.config) == (-1, -1, {})


@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, TRANSACTION_STATE])
def test_their_settings_are_legal(name: str) -> None:
    check(TopicConfig, CONFIG, automatic(name, CONFIG, 1).config)

"""Settings that change while the broker runs: who wins, who hears."""

from __future__ import annotations

import logging

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.group import GroupConfig
from ottla.config.topic import TopicConfig
from ottla.model.errors import UserError

NAME = "log.cleaner.threads"


def test_this_broker_wins_over_all_brokers_over_the_start_over_the_default() -> None:
    config = DynamicConfig({})
    assert config.current.log_cleaner_threads == 1
    config = DynamicConfig({NAME: "2"})
    assert config.current.log_cleaner_threads == 2
    config.set_cluster({NAME: "3"})
    assert config.current.log_cleaner_threads == 3
    config.set_broker({NAME: "4"})
    assert config.current.log_cleaner_threads == 4
    config.set_broker({})
    config.set_cluster({})
    assert config.current.log_cleaner_threads == 2


def test_listeners_hear_the_settings_before_and_after() -> None:
    config = DynamicConfig({})
    heard: list[tuple[int, int]] = []

    def listen(before: BrokerConfig, after: BrokerConfig) -> None:
        heard.append((before.log_cleaner_threads, after.log_cleaner_threads))

    config.on_broker(listen)
    config.set_cluster({NAME: "3"})
    config.set_broker({NAME: "4"})
    assert heard == [(1, 3), (3, 4)]


@pytest.mark.spec("CTL-12")
def test_a_topic_has_its_overrides_and_otherwise_follows_the_broker() -> None:
    config = DynamicConfig({"log.retention.hours": "1"})
    heard: list[str] = []
    config.on_topic(heard.append)
    assert config.topic("orders").retention_ms == 3_600_000
    config.set_topic("orders", {"retention.ms": "5", "segment.ms": "7"})
    assert config.topic("orders") == TopicConfig(retention_ms=5, segment_ms=7)
    assert config.topic_overrides("orders") == {"retention.ms": "5", "segment.ms": "7"}
    config.set_topic("orders", {})
    assert config.topic("orders").retention_ms == 3_600_000
    assert config.topic_overrides("orders") == {}
    assert heard == ["orders", "orders"]


def test_topics_follow_their_broker_while_it_runs() -> None:
    config = DynamicConfig({})
    config.set_topic("orders", {"segment.ms": "7"})
    config.set_cluster({"log.retention.ms": "9"})
    assert config.topic("orders") == TopicConfig(retention_ms=9, segment_ms=7)
    assert config.topic("others") == TopicConfig(retention_ms=9)


def test_topics_without_overrides_share_one_instance() -> None:
    config = DynamicConfig({})
    assert config.topic("one") is config.topic("two")


def test_a_stored_value_that_cannot_be_read_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = DynamicConfig({})
    with caplog.at_level(logging.ERROR):
        config.set_broker({NAME: "lots", "message.max.bytes": "5"})
        config.set_topic("orders", {"retention.ms": "soon", "segment.ms": "7"})
    assert config.current.log_cleaner_threads == 1
    assert config.current.message_max_bytes == 5
    assert config.topic("orders").segment_ms == 7
    assert len(caplog.messages) == 2


def test_stored_values_that_contradict_each_other_leave_things_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = DynamicConfig({})
    with caplog.at_level(logging.ERROR):
        config.set_broker({"max.connections.per.ip": "0"})
    assert config.current == BrokerConfig()
    assert "contradict" in caplog.text


def test_what_cannot_change_live_is_not_changed_by_what_is_stored() -> None:
    config = DynamicConfig({})
    config.set_broker({"broker.id": "5", "no.such": "1"})
    config.set_cluster({"listeners": "PLAINTEXT://:1"})  # only a single broker's may change
    assert config.current == BrokerConfig()


def test_what_would_hold_can_be_tried() -> None:
    config = DynamicConfig({NAME: "2"})
    assert config.with_overrides(cluster={NAME: "3"}, broker={}).log_cleaner_threads == 3
    with pytest.raises(UserError, match=NAME):
        config.with_overrides(cluster={}, broker={NAME: "-1"})
    assert config.current.log_cleaner_threads == 2


def test_a_group_has_its_overrides_and_otherwise_follows_the_broker() -> None:
    config = DynamicConfig({"group.consumer.session.timeout.ms": "50000"})
    assert config.group("billing").consumer_session_timeout_ms == 50_000
    config.set_group("billing", {"consumer.heartbeat.interval.ms": "7000"})
    own = GroupConfig(consumer_session_timeout_ms=50_000, consumer_heartbeat_interval_ms=7_000)
    assert config.group("billing") == own
    assert config.groups == {"billing": own}
    assert config.group_overrides("billing") == {"consumer.heartbeat.interval.ms": "7000"}
    config.set_cluster({"min.insync.replicas": "2"})
    assert config.group("billing") == own, "as before, though all was worked out anew"
    config.set_group("billing", {})
    assert config.groups == {}
    assert config.group_overrides("billing") == {}

"""AlterConfigs and IncrementalAlterConfigs: what may change, and what a client hears if not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.broker import BrokerConfig
from ottla.config.changes import (
    Alteration,
    AlterOperation,
    alter_overrides,
    altered_broker,
    check,
    check_broker,
    replace_overrides,
)
from ottla.config.dynamic import DynamicConfig
from ottla.config.topic import TopicConfig
from ottla.model.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = AlterOperation
BROKER = BrokerConfig()
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.invalid_request, ErrorCode.invalid_config


@pytest.mark.parametrize(
    ("stored", "alteration", "expected"),
    [
        ({}, Alteration("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, Alteration("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5"}, Alteration("retention.ms", DELETE, None), {}),
        ({}, Alteration("retention.ms", DELETE, None), {}),
        ({}, Alteration("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        (
            {"cleanup.policy": "compact"},
            Alteration("cleanup.policy", APPEND, "compact,delete"),
            {"cleanup.policy": "compact,delete"},
        ),
        (
            {"cleanup.policy": "compact,delete"},
            Alteration("cleanup.policy", SUBTRACT, "delete"),
            {"cleanup.policy": "compact"},
        ),
        (
            {"cleanup.policy": "delete,delete"},
            Alteration("cleanup.policy", SUBTRACT, "delete"),
            {"cleanup.policy": "delete"},
        ),
        (
            {"leader.replication.throttled.replicas": "0:1"},
            Alteration("leader.replication.throttled.replicas", APPEND, "1:2,0:1"),
            {"leader.replication.throttled.replicas": "0:1,1:2"},
        ),
    ],
)
def test_an_operation_changes_one_override(
    stored: dict[str, str], alteration: Alteration, expected: dict[str, str]
) -> None:
    before = dict(stored)
    assert alter_overrides(TopicConfig, BROKER, [alteration], stored) == expected
    assert stored == before


@pytest.mark.parametrize(
    ("alterations", "code"),
    [
        ([Alteration("no.such", SET, "1")], INVALID_CONFIG),
        ([Alteration("no.such", APPEND, "1")], INVALID_CONFIG),
        ([Alteration("retention.ms", SET, "soon")], INVALID_CONFIG),
        ([Alteration("retention.ms", SET, "-2")], INVALID_CONFIG),
        ([Alteration("retention.ms", APPEND, "5")], INVALID_CONFIG),
        ([Alteration("retention.ms", SUBTRACT, "5")], INVALID_CONFIG),
        ([Alteration("cleanup.policy", APPEND, "burn")], INVALID_CONFIG),
        ([Alteration("retention.ms", SET, None)], INVALID_REQUEST),
        ([Alteration("cleanup.policy", APPEND, None)], INVALID_REQUEST),
        ([Alteration("retention.ms", 9, "5")], INVALID_REQUEST),
        (
            [Alteration("retention.ms", SET, "5"), Alteration("retention.ms", DELETE, None)],
            INVALID_REQUEST,
        ),
    ],
)
def test_a_topics_bad_change_is_refused_with_kafkas_code_and_the_key(
    alterations: list[Alteration], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refusal:
        alter_overrides(TopicConfig, BROKER, alterations, {})
    assert refusal.value.code is code
    message = refusal.value.message or ""
    said = (alterations[0].name, "operation", "duplicate config keys")
    assert any(words in message for words in said)


@pytest.mark.parametrize(
    ("alterations", "whole_cluster", "code"),
    [
        ([Alteration("no.such", APPEND, "1")], False, INVALID_CONFIG),
        ([Alteration("ssl.keystore.password", SET, "1")], True, INVALID_REQUEST),
        ([Alteration("ssl.engine.factory.class", SET, "1")], False, INVALID_REQUEST),
        ([Alteration("node.id", SET, "1")], False, INVALID_REQUEST),
        ([Alteration("log.retention.ms", SET, "")], False, INVALID_REQUEST),
        ([Alteration("num.io.threads", SET, "17")], False, INVALID_REQUEST),
        ([Alteration("num.io.threads", SET, "3")], True, INVALID_REQUEST),
        ([Alteration("broker.id", SET, "1")], False, INVALID_REQUEST),
        ([Alteration("num.partitions", SET, "2")], True, INVALID_REQUEST),
        ([Alteration("advertised.listeners", SET, "PLAINTEXT://a:1")], False, INVALID_REQUEST),
        ([Alteration("listeners", SET, "PLAINTEXT://a:1")], True, INVALID_REQUEST),
        ([Alteration("log.cleaner.threads", SET, "lots")], True, INVALID_REQUEST),
        ([Alteration("max.connections.per.ip", SET, "0")], False, INVALID_REQUEST),
    ],
)
def test_a_brokers_bad_change_is_refused_with_kafkas_code(
    alterations: list[Alteration], whole_cluster: bool, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refusal:
        altered_broker(DynamicConfig({}), alterations, whole_cluster=whole_cluster)
    assert refusal.value.code is code


def test_a_broker_and_all_brokers_are_changed_apart() -> None:
    config = DynamicConfig({})
    config.set_cluster({"log.cleaner.threads": "2"})
    change = [Alteration("message.max.bytes", SET, "5")]
    assert altered_broker(config, change, whole_cluster=True) == {
        "log.cleaner.threads": "2",
        "message.max.bytes": "5",
    }
    assert altered_broker(config, change, whole_cluster=False) == {"message.max.bytes": "5"}
    bound = [Alteration("listeners", SET, "PLAINTEXT://outside:1")]
    assert altered_broker(config, bound, whole_cluster=False)


@pytest.mark.parametrize("whole_cluster", [False, True])
def test_a_broker_setting_that_nobody_knows_is_stored_and_can_be_deleted(
    whole_cluster: bool,
) -> None:
    config = DynamicConfig({})
    change = [Alteration("my.plugin.key", SET, "x")]
    stored = altered_broker(config, change, whole_cluster=whole_cluster)
    assert stored == {"my.plugin.key": "x"}
    before = config.current
    (config.set_cluster if whole_cluster else config.set_broker)(stored)
    assert config.current == before
    change = [Alteration("my.plugin.key", DELETE, None)]
    assert altered_broker(config, change, whole_cluster=whole_cluster) == {}


def test_a_bad_value_for_all_brokers_is_refused_though_a_broker_has_one_of_its_own() -> None:
    config = DynamicConfig({})
    config.set_broker({"log.retention.ms": "5"})
    with pytest.raises(KafkaError, match=r"log\.retention\.ms") as refused:
        check_broker(config, {"log.retention.ms": "abc"}, whole_cluster=True)
    assert refused.value.code is INVALID_REQUEST


def test_the_number_of_threads_changes_by_half_to_double_at_a_time() -> None:
    config = DynamicConfig({})
    for number in ("4", "8", "16"):
        change = [Alteration("num.io.threads", SET, number)]
        assert altered_broker(config, change, whole_cluster=False) == {"num.io.threads": number}


def test_a_whole_replacement_forgets_what_is_not_named() -> None:
    assert replace_overrides([("retention.ms", "5")]) == {"retention.ms": "5"}
    assert replace_overrides([]) == {}
    for pairs in ([("retention.ms", None)], [("a", "1"), ("a", "2")]):
        with pytest.raises(KafkaError) as refusal:
            replace_overrides(pairs)
        assert refusal.value.code is INVALID_REQUEST


def test_a_whole_replacement_is_checked_like_any_change() -> None:
    check(TopicConfig, BROKER, {"retention.ms": "5"})
    with pytest.raises(KafkaError, match=r"retention.ms"):
        check(TopicConfig, BROKER, {"retention.ms": "x"})
    check_broker(DynamicConfig({}), {"log.cleaner.threads": "2"}, whole_cluster=True)
    with pytest.raises(KafkaError, match=r"broker.id"):
        check_broker(DynamicConfig({}), {"broker.id": "2"}, whole_cluster=False)


ITEMS = st.lists(st.sampled_from(["0:1", "0:2", "1:1", "1:2"]), max_size=4, unique=True)


@given(ITEMS, ITEMS)
def test_what_is_added_and_taken_away_again_leaves_no_trace(
    before: list[str], added: list[str]
) -> None:
    name = "leader.replication.throttled.replicas"
    new = [item for item in added if item not in before]
    stored = {name: ",".join(before)}
    larger = alter_overrides(TopicConfig, BROKER, [Alteration(name, APPEND, ",".join(new))], stored)
    again = alter_overrides(
        TopicConfig, BROKER, [Alteration(name, SUBTRACT, ",".join(new))], larger
    )
    assert again == stored

"""What DescribeConfigs shows."""

from __future__ import annotations

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.entries import (
    Described,
    Source,
    Synonym,
    describe_broker,
    describe_cluster,
    describe_group,
    describe_topic,
)
from ottla.config.group import GroupConfig
from ottla.config.settings import Type
from ottla.config.topic import TopicConfig

INTERNAL = {"internal.segment.bytes"}


def one(entries: list[Described]) -> Described:
    [entry] = entries
    return entry


def test_every_setting_is_shown_but_internal_ones() -> None:
    config = DynamicConfig({})
    assert {e.name for e in describe_broker(config)} == set(BrokerConfig.SETTINGS) - INTERNAL
    assert {e.name for e in describe_topic(config, "t")} == set(TopicConfig.SETTINGS) - INTERNAL
    assert describe_cluster(config) == []


def test_a_default_is_shown_as_one() -> None:
    entry = one(describe_broker(DynamicConfig({}), ["num.partitions"]))
    assert entry == Described(
        name="num.partitions",
        value="1",
        source=Source.DEFAULT,
        read_only=True,
        sensitive=False,
        kind=Type.INT,
        doc=BrokerConfig.SETTINGS["num.partitions"].doc,
        synonyms=(Synonym("num.partitions", "1", Source.DEFAULT),),
    )
    assert entry.is_default


def test_synonyms_come_strongest_first() -> None:
    config = DynamicConfig({"message.max.bytes": "4"})
    config.set_cluster({"message.max.bytes": "3"})
    config.set_broker({"message.max.bytes": "2"})
    config.set_topic("orders", {"max.message.bytes": "1"})
    broker = one(describe_broker(config, ["message.max.bytes"]))
    assert (broker.value, broker.source, broker.read_only) == ("2", Source.DYNAMIC_BROKER, False)
    assert broker.synonyms == (
        Synonym("message.max.bytes", "2", Source.DYNAMIC_BROKER),
        Synonym("message.max.bytes", "3", Source.DYNAMIC_CLUSTER),
        Synonym("message.max.bytes", "4", Source.STATIC),
        Synonym("message.max.bytes", "1048588", Source.DEFAULT),
    )
    topic = one(describe_topic(config, "orders", ["max.message.bytes"]))
    assert (topic.value, topic.source) == ("1", Source.TOPIC)
    assert topic.synonyms == (
        Synonym("max.message.bytes", "1", Source.TOPIC),
        *broker.synonyms,
    )


def test_a_setting_said_in_other_units_is_a_synonym() -> None:
    config = DynamicConfig({"log.retention.hours": "2", "log.retention.minutes": "1"})
    entry = one(describe_topic(config, "orders", ["retention.ms"]))
    assert (entry.value, entry.source, entry.synonyms) == ("60000", Source.DEFAULT, ())
    assert one(describe_broker(config, ["log.retention.ms"])).value is None
    config.set_cluster({"log.retention.ms": "5"})
    entry = one(describe_topic(config, "orders", ["retention.ms"]))
    assert (entry.value, entry.source) == ("5", Source.DYNAMIC_CLUSTER)
    assert entry.synonyms == (
        Synonym("log.retention.ms", "5", Source.DYNAMIC_CLUSTER),
        Synonym("log.retention.minutes", "1", Source.STATIC),
        Synonym("log.retention.hours", "2", Source.STATIC),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )
    hours = one(describe_broker(config, ["log.retention.hours"]))
    assert [synonym.name for synonym in hours.synonyms] == ["log.retention.hours"] * 2


def test_a_list_is_shown_in_the_order_it_was_given_in() -> None:
    config = DynamicConfig({})
    config.set_topic("orders", {"cleanup.policy": " delete , compact "})
    entry = one(describe_topic(config, "orders", ["cleanup.policy"]))
    assert entry.value == entry.synonyms[0].value == "delete,compact"
    config.set_cluster({"log.cleanup.policy": "delete,compact"})
    assert one(describe_broker(config, ["log.cleanup.policy"])).value == "delete,compact"
    assert one(describe_topic(config, "other", ["cleanup.policy"])).value == "delete,compact"


def test_a_stored_setting_that_nobody_knows_is_shown_without_its_value() -> None:
    config = DynamicConfig({})
    config.set_cluster({"my.plugin.key": "y"})
    config.set_broker({"my.plugin.key": "x"})
    entry = one(describe_broker(config, ["my.plugin.key"]))
    assert (entry.value, entry.read_only, entry.sensitive) == (None, True, True)
    assert (entry.kind, entry.source) == (Type.UNKNOWN, Source.DYNAMIC_BROKER)
    assert entry.synonyms == (
        Synonym("my.plugin.key", None, Source.DYNAMIC_BROKER),
        Synonym("my.plugin.key", None, Source.DYNAMIC_CLUSTER),
    )
    assert one(describe_cluster(config)).source is Source.DYNAMIC_CLUSTER
    assert one(describe_cluster(config)).value is None


def test_only_what_was_changed_for_all_brokers_is_shown_for_them() -> None:
    config = DynamicConfig({"message.max.bytes": "4"})
    config.set_cluster({"message.max.bytes": "3", "log.cleaner.threads": "2"})
    entries = describe_cluster(config)
    assert [(e.name, e.value, e.source) for e in entries] == [
        ("log.cleaner.threads", "2", Source.DYNAMIC_CLUSTER),
        ("message.max.bytes", "3", Source.DYNAMIC_CLUSTER),
    ]
    assert len(describe_cluster(config, ["message.max.bytes"])) == 1


def test_what_cannot_change_live_is_read_only_and_topic_settings_never_are() -> None:
    entries = describe_broker(DynamicConfig({}), ["broker.id", "advertised.listeners", "listeners"])
    assert {e.name: e.read_only for e in entries} == {
        "broker.id": True,
        "advertised.listeners": True,
        "listeners": False,
    }
    assert not any(entry.read_only for entry in describe_topic(DynamicConfig({}), "t"))


def test_an_unknown_name_is_passed_over() -> None:
    assert describe_topic(DynamicConfig({}), "t", ["no.such"]) == []


def test_no_names_means_all_of_them() -> None:
    assert len(describe_topic(DynamicConfig({}), "t", [])) == len(TopicConfig.SETTINGS) - 1


def test_sources_and_kinds_have_kafkas_numbers() -> None:
    assert [int(source) for source in Source] == [0, 1, 2, 3, 4, 5, 8]
    assert [int(kind) for kind in Type] == list(range(10))


def test_a_groups_settings_come_from_it_or_from_the_broker() -> None:
    config = DynamicConfig({"group.consumer.session.timeout.ms": "50000"})
    config.set_group("billing", {"consumer.session.timeout.ms": "55000"})
    assert [e.name for e in describe_group(config, "billing")] == list(GroupConfig.SETTINGS)
    entry = one(describe_group(config, "billing", ["consumer.session.timeout.ms"]))
    assert (entry.value, entry.source, entry.read_only) == ("55000", Source.GROUP, False)
    assert entry.synonyms == (
        Synonym("consumer.session.timeout.ms", "55000", Source.GROUP),
        Synonym("group.consumer.session.timeout.ms", "50000", Source.STATIC),
        Synonym("group.consumer.session.timeout.ms", "45000", Source.DEFAULT),
    )
    other = one(describe_group(config, "other", ["consumer.session.timeout.ms"]))
    assert (other.value, other.source) == ("50000", Source.STATIC)

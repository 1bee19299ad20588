from __future__ import annotations

import pytest

import ottla
from ottla import ErrorCode, KafkaError
from ottla.client.admin import (
    ConfigChange,
    ConfigOp,
    ConfigSource,
    Resource,
    ResourceKind,
)
from ottla.client.admin.configs import _source


@pytest.mark.spec("TOOL-18")
def test_settings_are_set_described_with_their_source_and_deleted(
    admin: ottla.Admin, topic: str
) -> None:
    resource = Resource.topic(topic)
    admin.incremental_alter_configs({resource: {"max.message.bytes": "1234"}}).all()
    entry = admin.describe_configs([resource], synonyms=True, documentation=True).one()[
        "max.message.bytes"
    ]
    assert (entry.value, entry.source) == ("1234", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert not entry.is_default
    assert [one.source for one in entry.synonyms] == [
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigSource.DEFAULT_CONFIG,
    ]
    assert entry.documentation
    admin.incremental_alter_configs({resource: {"max.message.bytes": None}}).all()
    assert (
        admin.describe_configs([resource], names=["max.message.bytes"])
        .one()["max.message.bytes"]
        .is_default
    )


def test_lists_grow_and_shrink(admin: ottla.Admin, topic: str) -> None:
    resource = Resource.topic(topic)

    def policy() -> set[str]:
        return set(
            (admin.describe_configs([resource]).one()["cleanup.policy"].value or "").split(",")
        )

    add = ConfigChange(ConfigOp.APPEND, "compact")
    admin.incremental_alter_configs({resource: {"cleanup.policy": add}}).all()
    assert policy() == {"compact", "delete"}
    take = ConfigChange(ConfigOp.SUBTRACT, "delete")
    admin.incremental_alter_configs({resource: {"cleanup.policy": take}}).all()
    assert policy() == {"compact"}


def test_altering_replaces_everything(admin: ottla.Admin, topic: str) -> None:
    resource = Resource.topic(topic)
    admin.incremental_alter_configs({resource: {"retention.ms": "1", "segment.ms": "2"}}).all()
    admin.alter_configs({resource: {"retention.ms": "3"}}).all()
    found = admin.describe_configs([resource]).one()
    assert found["retention.ms"].value == "3"
    assert found["segment.ms"].is_default


def test_a_refused_value_changes_nothing_and_neither_does_a_question(
    admin: ottla.Admin, topic: str
) -> None:
    resource = Resource.topic(topic)
    bad = admin.incremental_alter_configs({resource: {"segment.ms": "soon"}})
    assert isinstance(bad[resource], KafkaError)
    assert bad[resource].code is ErrorCode.invalid_config  # type: ignore[union-attr]
    admin.incremental_alter_configs({resource: {"segment.ms": "9"}}, validate_only=True).all()
    assert admin.describe_configs([resource]).one()["segment.ms"].is_default


def test_brokers_and_loggers_are_asked_at_their_broker(admin: ottla.Admin) -> None:
    found = admin.describe_configs([Resource.broker(0), Resource.loggers(0)]).all()
    assert found[Resource.broker(0)]["broker.id"].value == "0"
    assert found[Resource.loggers(0)]
    with pytest.raises(KafkaError, match="no broker 77"):
        admin.describe_configs([Resource.broker(77)]).all()


def test_what_has_settings_is_listed(admin: ottla.Admin, topic: str) -> None:
    assert Resource.topic(topic) in admin.list_config_resources()
    assert admin.list_config_resources([ResourceKind.BROKER]) == [Resource.broker(0)]


def test_resources_say_what_they_are() -> None:
    assert str(Resource.topic("t")) == "topic t"
    assert str(Resource.broker(None)) == "every broker"
    assert str(Resource.group("g")) == "group g"


def test_a_source_of_a_newer_broker_is_unknown() -> None:
    assert _source(99) is ConfigSource.UNKNOWN

"""Settings of a single listener."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.changes import Alteration, AlterOperation, altered_broker
from ottla.config.dynamic import DynamicConfig
from ottla.config.entries import Source, describe_broker, describe_cluster
from ottla.config.listener_settings import OfListeners, base_name, is_of_listener
from ottla.config.properties import load
from ottla.model.errors import ErrorCode, KafkaError, UserError

NAME = "listener.name.external.max.connections"


def test_a_listeners_setting_is_known_by_its_prefix() -> None:
    assert is_of_listener(NAME)
    assert base_name(NAME) == "max.connections"
    for other in ("max.connections", "listener.name.x.num.io.threads", "listener.name.x."):
        assert not is_of_listener(other)
        assert base_name(other) == other


@pytest.mark.spec("SEC-09", "CFG-018")
def test_values_are_found_by_the_listeners_name() -> None:
    found = OfListeners.of({NAME: "5", "listener.name.a.max.connection.creation.rate": "7"})
    assert found == OfListeners({"EXTERNAL": 5}, {"A": 7}, {})


@pytest.mark.spec("SEC-01")
def test_tls_and_sasl_may_differ_between_listeners_and_mechanisms() -> None:
    found = OfListeners.of(
        {
            "listener.name.external.ssl.client.auth": "required",
            "listener.name.external.scram-sha-256.sasl.jaas.config": "secret",
            "listener.name.in.sasl.enabled.mechanisms": "PLAIN",
        }
    )
    assert found.security == {
        "EXTERNAL": {"ssl.client.auth": "required", "scram-sha-256.sasl.jaas.config": "secret"},
        "IN": {"sasl.enabled.mechanisms": "PLAIN"},
    }


def test_a_bad_value_is_refused_by_name_at_the_start() -> None:
    with pytest.raises(UserError, match=NAME):
        BrokerConfig.parse({NAME: "many"})


def test_a_file_may_have_them_without_a_warning() -> None:
    loaded = load(sets=[f"{NAME}=5", "listener.name.external.num.io.threads=1"])
    assert loaded.config.of_listeners.max_connections == {"EXTERNAL": 5}
    assert [line.partition(" ")[0] for line in loaded.warnings] == [
        "listener.name.external.num.io.threads"
    ]


@pytest.mark.spec("NET-40")
@pytest.mark.parametrize("whole_cluster", [False, True])
def test_they_are_changed_while_the_broker_runs_for_one_broker_or_all(whole_cluster: bool) -> None:
    config = DynamicConfig({NAME: "5"})
    alterations = [Alteration(NAME, AlterOperation.SET, "6")]
    overrides = altered_broker(config, alterations, whole_cluster=whole_cluster)
    (config.set_cluster if whole_cluster else config.set_broker)(overrides)
    assert config.current.of_listeners.max_connections == {"EXTERNAL": 6}
    source = Source.DYNAMIC_CLUSTER if whole_cluster else Source.DYNAMIC_BROKER
    (entry,) = describe_broker(config, [NAME])
    assert (entry.value, entry.source, entry.read_only) == ("6", source, False)
    assert [one.value for one in entry.synonyms] == ["6", "5", "2147483647"]
    assert [one.name for one in describe_cluster(config)] == [NAME] * whole_cluster
    (config.set_cluster if whole_cluster else config.set_broker)({})
    assert config.current.of_listeners.max_connections == {"EXTERNAL": 5}


def test_a_bad_change_is_refused_and_a_stored_one_left_out() -> None:
    config = DynamicConfig({})
    with pytest.raises(KafkaError) as refusal:
        altered_broker(config, [Alteration(NAME, AlterOperation.SET, "-1")], whole_cluster=False)
    assert refusal.value.code is ErrorCode.invalid_request
    config.set_broker({NAME: "-1"})
    assert config.current.of_listeners.max_connections == {}

"""Settings of clients: both spellings, their mistakes, and the rules between them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.config.client import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.model.errors import UserError


@pytest.mark.spec("CFG-078")
def test_keyword_arguments_and_kafkas_names_say_the_same() -> None:
    ours = ProducerConfig.from_options({"linger_ms": 7, "bootstrap_servers": ["a:1", "b:2"]})
    theirs = ProducerConfig.from_options({}, {"linger.ms": "7", "bootstrap.servers": "a:1,b:2"})
    assert ours == theirs
    assert ours.linger_ms == 7


@pytest.mark.parametrize(
    ("options", "config", "said"),
    [
        ({"linger_m": 1}, None, "linger_m: Producer has no such option; did you mean linger_ms?"),
        ({}, {"linger.m": 1}, "linger.m: Producer has no such option; did you mean linger.ms?"),
        ({"quite_other": 1}, None, "quite_other: Producer has no such option"),
        ({"linger_ms": 1}, {"linger.ms": 1}, "linger.ms is given twice"),
        ({"linger_ms": "soon"}, None, "linger.ms='soon': expected a whole number"),
        ({"linger_ms": True}, None, "linger.ms='true': expected a whole number"),
        ({"linger_ms": -1}, None, "linger.ms='-1': expected at least 0"),
        ({"linger_ms": object()}, None, "expected int"),
        ({"acks": 2}, None, "acks='2': expected one of all, -1, 0, 1"),
        ({"compression_type": "brotli"}, None, "expected one of none, gzip, snappy, lz4, zstd"),
        ({"bootstrap_servers": "host:port"}, None, "expected host:port, such as localhost:9092"),
        ({"bootstrap_servers": ""}, None, "bootstrap.servers"),
        ({"delivery_timeout_ms": 10}, None, "at least linger.ms + request.timeout.ms, 30005"),
        ({"transactional_id": ""}, None, "transactional.id=''"),
    ],
)
def test_a_mistake_is_named_with_what_was_expected(
    options: dict[str, Any], config: dict[str, Any] | None, said: str
) -> None:
    with pytest.raises(UserError) as told:
        ProducerConfig.from_options(options, config)
    assert said in str(told.value)


@pytest.mark.spec("CFG-079", "CFG-103", "CFG-104", "CFG-105")
@pytest.mark.parametrize(
    "name",
    ["metadata.broker.list", "block.on.buffer.full", "metadata.fetch.timeout.ms", "timeout.ms"],
)
def test_names_that_kafka_has_given_up_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: Producer has no such option"):
        ProducerConfig.from_options({}, {name: "1"})


def test_addresses_have_a_default_port_and_may_be_in_brackets() -> None:
    config = ClientConfig.from_options(
        {"bootstrap_servers": "one, PLAINTEXT://two:1, [::1]:3, [::2]"}
    )
    assert [tuple(each) for each in config.addresses] == [
        ("one", 9092), ("two", 1), ("::1", 3), ("::2", 9092)
    ]  # fmt: skip
    assert [str(each) for each in config.addresses][2] == "[::1]:3"


@pytest.mark.spec("TXN-04", "CFG-089", "CFG-096", "CFG-098")
def test_idempotence_is_on_unless_a_setting_that_was_given_forbids_it() -> None:
    assert ProducerConfig.from_options({}).is_idempotent
    for against in (
        {"acks": 1},
        {"retries": 0},
        {"max_in_flight_requests_per_connection": 6},
        {"enable_idempotence": False},
    ):
        assert not ProducerConfig.from_options(against).is_idempotent
        if "enable_idempotence" not in against:
            with pytest.raises(UserError, match=r"with enable\.idempotence=true"):
                ProducerConfig.from_options({**against, "enable_idempotence": True})


@pytest.mark.spec("TXN-15", "CFG-099")
def test_a_transactional_id_insists_on_idempotence() -> None:
    assert ProducerConfig.from_options({"transactional_id": "t"}).is_idempotent
    for against in ({"enable_idempotence": False}, {"acks": 1}, {"retries": 0}):
        with pytest.raises(UserError, match=r"transactional\.id"):
            ProducerConfig.from_options({"transactional_id": "t", **against})


def test_two_phase_commit_needs_a_name_and_no_timeout() -> None:
    two_phase = {"transaction_two_phase_commit_enable": True}
    with pytest.raises(UserError, match=r"needs a transactional\.id"):
        ProducerConfig.from_options(two_phase)
    with pytest.raises(UserError, match=r"transaction\.timeout\.ms"):
        ProducerConfig.from_options(
            {**two_phase, "transactional_id": "t", "transaction_timeout_ms": 5}
        )


@pytest.mark.spec(
    "CFG-083", "CFG-084", "CFG-085", "CFG-086", "CFG-090", "CFG-091", "CFG-092", "CFG-093",
    "CFG-094", "CFG-095", "CFG-097", "CFG-100", "CFG-101",
)  # fmt: skip
def test_defaults_are_kafkas_but_for_larger_batches() -> None:
    config = ProducerConfig.from_options({})
    shown = {name: config.text(name) for name in config.SETTINGS}
    assert shown["request.timeout.ms"] == "30000"
    assert shown["metadata.max.age.ms"] == "300000"
    assert shown["connections.max.idle.ms"] == "540000"
    assert shown["retry.backoff.ms"] == "100"
    assert shown["retries"] == str(2**31 - 1)
    assert shown["batch.size"] == "1000000", "librdkafka's: docs/clients.md says why"
    assert shown["linger.ms"] == "5"
    assert shown["buffer.memory"] == str(32 << 20)
    assert shown["max.block.ms"] == "60000"
    assert shown["max.request.size"] == str(1 << 20)
    assert shown["compression.type"] == "none"
    assert shown["transaction.timeout.ms"] == "60000"
    assert shown["delivery.timeout.ms"] == "120000"
    assert config.delivery_ms == 120_000


def test_a_delivery_timeout_that_was_not_given_follows_the_settings_below_it() -> None:
    config = ProducerConfig.from_options({"request_timeout_ms": 200_000})
    assert config.delivery_ms == 200_005


def test_only_the_level_of_the_codec_in_use_counts() -> None:
    levels = {"compression_gzip_level": 3, "compression_zstd_level": 7}
    for codec, level in (("gzip", 3), ("zstd", 7), ("lz4", 9), ("snappy", None), ("none", None)):
        config = ProducerConfig.from_options({"compression_type": codec, **levels})
        assert config.compression_level == level


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fetch_max_wait_ms": 40_000}, "fetch.max.wait.ms=40000"),
        ({"heartbeat_interval_ms": 45_000}, "heartbeat.interval.ms=45000"),
        ({"group_instance_id": "one"}, "group.instance.id needs a group.id"),
        ({"auto_offset_reset": "begin"}, "auto.offset.reset='begin'"),
    ],
)
def test_a_consumers_settings_have_rules_too(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as told:
        ConsumerConfig.from_options(options)
    assert said in str(told.value)


def test_every_setting_is_explained() -> None:
    for kind in (ProducerConfig, ConsumerConfig, AdminConfig):
        for setting in kind.SETTINGS.values():
            assert setting.doc.endswith("."), setting.name

"""The network's limits are those of the settings, name by name."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from ottla.broker.app import net_limits
from ottla.config.broker import BrokerConfig
from ottla.net.limits import UNLIMITED, DescriptorLimits, NetLimits

GIB = 1 << 30
NOT_A_SETTING = {
    "descriptors",
    "listener_max_connections",
    "listener_max_connection_creation_rate",
    "protected_listener",
    "quota_windows",
    "reply_memory_bytes",
}


def test_the_defaults_agree_but_for_those_that_the_machine_decides() -> None:
    limits = net_limits(BrokerConfig.parse({}), 2 * GIB)
    assert limits.queued_max_request_bytes == GIB // 2
    assert limits.reply_memory_bytes == GIB // 4
    same = replace(limits, queued_max_request_bytes=-1, reply_memory_bytes=-1)
    assert same == NetLimits()


def test_descriptors_bound_connections_whatever_the_setting_says() -> None:
    config = BrokerConfig.parse({"max.connections": "5000"})
    limits = net_limits(config, GIB, DescriptorLimits(100, 10, 5))
    assert (limits.max_connections, limits.descriptors) == (5000, DescriptorLimits(100, 10, 5))


@pytest.mark.spec("NET-39", "NET-40")
@pytest.mark.parametrize(
    "name", sorted(field.name for field in fields(NetLimits) if field.name not in NOT_A_SETTING)
)
def test_every_limit_follows_its_setting(name: str) -> None:
    value: object = 4_000_000_000 if name == "queued_max_request_bytes" else 4_321
    text = str(value)
    if name == "max_connections_per_ip_overrides":
        value, text = {"10.0.0.1": 5}, "10.0.0.1:5"
    config = BrokerConfig.parse({name.replace("_", "."): text})
    assert getattr(net_limits(config, GIB), name) == value


@pytest.mark.spec("SEC-09", "NET-39")
def test_limits_of_single_listeners_follow_their_settings() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "INTERNAL://:9092,EXTERNAL://:9093",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "listener.name.external.max.connections": "5",
            "listener.name.external.max.connection.creation.rate": "7",
        }
    )
    limits = net_limits(config, GIB)
    assert (limits.connections_to("EXTERNAL"), limits.creation_rate_of("EXTERNAL")) == (5, 7)
    assert limits.connections_to("INTERNAL") == UNLIMITED
    assert limits.protected_listener == "INTERNAL"


def test_one_listener_alone_is_not_protected_from_itself() -> None:
    assert net_limits(BrokerConfig.parse({}), GIB).protected_listener is None

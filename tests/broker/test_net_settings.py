"""The network's limits are those of the settings, name by name."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ottla.broker.net_settings import net_limits
from ottla.config.broker import BrokerConfig
from ottla.net.limits import NetLimits

NOT_A_SETTING = {"listener_max_connections"}


def test_the_defaults_agree() -> None:
    assert net_limits(BrokerConfig.parse({})) == NetLimits()


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
    assert getattr(net_limits(config), name) == value

"""The assignors by name."""

from __future__ import annotations

from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.consumer.assignors import ASSIGNORS
from ottla.coordinator.group.settings import GroupSettings


def test_every_assignor_a_setting_may_name_is_there() -> None:
    assert tuple(ASSIGNORS) == GroupSettings().assignors
    assert BrokerConfig.parse({}).group_consumer_assignors == tuple(ASSIGNORS)

"""The settings groups are run by have Kafka's defaults."""

from __future__ import annotations

from ottla.broker.coordinators import group_limits
from ottla.config.dynamic import DynamicConfig
from ottla.coordinator.group.settings import GroupSettings


def test_limits_are_the_brokers_settings() -> None:
    assert group_limits(DynamicConfig({})) == GroupSettings()
    assert group_limits(DynamicConfig({"group.max.size": "3"})).max_size == 3

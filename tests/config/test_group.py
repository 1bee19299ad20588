"""Settings of single groups."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.group import SYNONYMS, GroupConfig
from ottla.model.errors import UserError

BEAT, SESSION = SYNONYMS
BROKER = BrokerConfig()


def test_a_group_follows_its_broker_but_for_its_overrides() -> None:
    broker = BROKER.changed(group_consumer_session_timeout_ms=50_000)
    assert GroupConfig.of(broker) == GroupConfig(consumer_session_timeout_ms=50_000)
    own = GroupConfig.of(broker, {BEAT: "7000"})
    assert own.consumer_heartbeat_interval_ms == 7_000
    assert own.consumer_session_timeout_ms == 50_000


def test_defaults_are_those_of_a_broker_that_was_told_nothing() -> None:
    assert GroupConfig.of(BROKER) == GroupConfig()
    for name, (synonym,) in SYNONYMS.items():
        assert GroupConfig.SETTINGS[name].default == BrokerConfig.SETTINGS[synonym].default


def test_a_value_stored_under_other_bounds_is_held_to_those_that_hold_now() -> None:
    assert GroupConfig.of(BROKER, {SESSION: "1"}).consumer_session_timeout_ms == 45_000
    assert GroupConfig.of(BROKER, {BEAT: "99999"}).consumer_heartbeat_interval_ms == 15_000


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"nonsense": "1"}, "Unknown group config name: nonsense"),
        ({"share.session.timeout.ms": "45000"}, "Unknown group config name"),
        ({SESSION: "soon"}, "a whole number"),
        ({SESSION: "44999"}, r"consumer.session.timeout.ms=44999: .* 45000 and 60000"),
        ({SESSION: "60001"}, r"expected between 45000 and 60000"),
        ({BEAT: "4999"}, r"consumer.heartbeat.interval.ms=4999: .* 5000 and 15000"),
        ({BEAT: "15001"}, r"expected between 5000 and 15000"),
    ],
)
def test_what_a_broker_does_not_allow_is_refused(overrides: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        GroupConfig.check(BROKER, overrides)


def test_what_it_allows_is_not() -> None:
    GroupConfig.check(BROKER, {})
    GroupConfig.check(BROKER, {SESSION: "45000", BEAT: "15000"})
    GroupConfig.check(BROKER, {SESSION: "60000", BEAT: "5000"})


def test_a_member_must_be_heard_of_within_its_session() -> None:
    broker = BROKER.changed(group_consumer_min_session_timeout_ms=1_000)
    GroupConfig.check(broker, {SESSION: "5001"})
    with pytest.raises(UserError, match=r"heartbeat.interval.ms=5000: expected less than .* 5000"):
        GroupConfig.check(broker, {SESSION: "5000"})

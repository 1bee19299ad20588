"""Every setting of a single group, and the broker setting each one falls back to.

A group stores only its overrides, which may exist before the group does; all else follows the
broker. They apply to groups of the consumer protocol only: members of classic groups set their own
timeouts.
"""

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple, Self

from ottla.config.broker import BrokerConfig
from ottla.config.settings import AtLeast, Doc, Settings
from ottla.model.errors import UserError

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "consumer.heartbeat.interval.ms": ("group.consumer.heartbeat.interval.ms",),
    "consumer.session.timeout.ms": ("group.consumer.session.timeout.ms",),
}


class GroupConfig(Settings):
    consumer_heartbeat_interval_ms: Annotated[
        int, AtLeast(1), Doc("How often a member sends a heartbeat.")
    ] = 5_000
    consumer_session_timeout_ms: Annotated[
        int,
        AtLeast(1),
        Doc("A member that sends no heartbeat for this long is removed from the group."),
    ] = 45_000

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> Self:
        """The settings of a group, within the broker's bounds (which may be newer than a value)."""
        overridden = cls.read(overrides or {})
        values = {
            attribute: max(span.low, min(span.high, overridden.get(attribute, span.own)))
            for attribute, span in _spans(broker).items()
        }
        return cls(**values)

    @classmethod
    def check(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """Refuse an unknown setting, a bad value, or one that the broker does not allow."""
        for name in overrides:
            if name not in cls.SETTINGS:
                raise UserError(f"Unknown group config name: {name}")
        spans = _spans(broker)
        for attribute, value in cls.read(overrides).items():
            own, low, high = spans[attribute]
            if not low <= value <= high:
                name = attribute.replace("_", ".")
                raise UserError(
                    f"{name}={value}: expected between {low} and {high}, the broker's bounds "
                    f"(its default is {own})"
                )
        config = cls.of(broker, overrides)
        beat_ms, session_ms = (
            config.consumer_heartbeat_interval_ms,
            config.consumer_session_timeout_ms,
        )
        if beat_ms >= session_ms:
            raise UserError(
                f"consumer.heartbeat.interval.ms={beat_ms}: expected less than "
                f"consumer.session.timeout.ms, {session_ms}"
            )


class Span(NamedTuple):
    """A broker's default of a group setting, and its bounds for groups."""

    own: int
    low: int
    high: int


def _spans(broker: BrokerConfig) -> dict[str, Span]:
    return {
        "consumer_heartbeat_interval_ms": Span(
            broker.group_consumer_heartbeat_interval_ms,
            broker.group_consumer_min_heartbeat_interval_ms,
            broker.group_consumer_max_heartbeat_interval_ms,
        ),
        "consumer_session_timeout_ms": Span(
            broker.group_consumer_session_timeout_ms,
            broker.group_consumer_min_session_timeout_ms,
            broker.group_consumer_max_session_timeout_ms,
        ),
    }

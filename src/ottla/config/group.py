"""Every setting of a single group, and the broker setting each one falls back to.

A group stores only its overrides, which need no group to be there; what it does not override
follows its broker. Only groups of the consumer protocol are run by them: members of classic groups
bring their own timeouts.
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
        int, AtLeast(1), Doc("How often a member is to be heard of.")
    ] = 5_000
    consumer_session_timeout_ms: Annotated[
        int,
        AtLeast(1),
        Doc("How long a member may be silent before its partitions are given away."),
    ] = 45_000

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> Self:
        """What holds for a group: within the broker's bounds, which may be newer than the value."""
        asked = cls.read(overrides or {})
        values = {
            attribute: max(span.low, min(span.high, asked.get(attribute, span.own)))
            for attribute, span in _spans(broker).items()
        }
        return cls(**values)

    @classmethod
    def check(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """Refuse an unknown setting, a bad value, or one that the broker does not allow."""
        for name in overrides:
            if name not in cls.SETTINGS:
                raise UserError(f"{name}: no group setting has this name")
        spans = _spans(broker)
        for attribute, value in cls.read(overrides).items():
            own, low, high = spans[attribute]
            if not low <= value <= high:
                name = attribute.replace("_", ".")
                raise UserError(
                    f"{name}={value}: expected between {low} and {high}, which the broker allows "
                    f"(its own is {own})"
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
    """A broker's own value of a group setting, and what it allows a group."""

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

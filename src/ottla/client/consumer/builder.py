"""Builds the parts of a consumer from its options.

Owns the options that are not settings, and the choice of group protocol. A mistake is a `UserError`
that names the option, before a connection is opened.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignors.assignor import Assignor
from ottla.client.consumer.assignors.choice import assignors
from ottla.client.consumer.core import Core
from ottla.client.consumer.fetch.chunk import ChunkReader, Read
from ottla.client.consumer.group.classic_loop import ClassicLoop
from ottla.client.consumer.group.classic_member import ClassicMember, ClassicTerms
from ottla.client.consumer.group.consumer_loop import ConsumerProtocolLoop
from ottla.client.consumer.group.consumer_member import (
    ConsumerProtocolMember,
    ConsumerProtocolTerms,
)
from ottla.client.consumer.group.membership import Group, MembershipParts
from ottla.client.consumer.group.standalone_loop import StandaloneLoop
from ottla.client.consumer.interceptors import ConsumerInterceptor, Interceptors
from ottla.client.consumer.position.reset_policy import reset_policy
from ottla.config.client import ConsumerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError

STRATEGY: Final = "partition_assignment_strategy"
_OLD_NAMES: Final = {
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
}
CLASSIC_ONLY: Final = (STRATEGY, "session_timeout_ms", "heartbeat_interval_ms")


class ConsumerBuilder:
    """A consumer whose options are checked, to be built."""

    def __init__(
        self,
        options: Mapping[str, object],
        config: Mapping[str, object] | None,
        deserializers: tuple[Read | None, Read | None],
        interceptors: Sequence[ConsumerInterceptor],
    ) -> None:
        plain, self._assignors = _strategies(_rename_options(options))
        self.config = _with_client_id(
            ConsumerConfig.from_options(plain, _rename_options(config or {}))
        )
        if self._assignors is None:
            self._assignors = assignors(self.config.partition_assignment_strategy)
        reset_policy(self.config.auto_offset_reset)
        for name, deserializer in zip(
            ("key_deserializer", "value_deserializer"), deserializers, strict=True
        ):
            if deserializer is not None and not callable(deserializer):
                raise UserError(f"{name}={deserializer!r}: expected a callable that takes bytes")
        if self.config.group_protocol == "consumer":
            self._check_consumer_protocol()
        self._deserializers = deserializers
        self._interceptors = interceptors
        self._dice = Random()

    def core(self) -> Core:
        config = self.config
        cluster = Cluster(
            config, SystemClock(), self._dice, auto_create=config.allow_auto_create_topics
        )
        reading = ChunkReader(*self._deserializers, check_crc=config.check_crcs)
        return Core(cluster, reading, Interceptors(self._interceptors))

    def group(self, core: Core) -> Group:
        config = core.config
        if config.group_id is None:
            return StandaloneLoop(core.subscriptions, core.watch, core.gate, core.rebalance)
        parts = MembershipParts(
            core.cluster,
            core.subscriptions,
            core.watch,
            core.gate,
            core.rebalance,
            core.poll_interval,
        )
        if config.group_protocol == "consumer":
            return ConsumerProtocolLoop(
                ConsumerProtocolMember(self._consumer_protocol_terms(config.group_id)), parts
            )
        assert self._assignors is not None
        terms = ClassicTerms(
            group_id=config.group_id,
            instance_id=config.group_instance_id,
            rack=config.client_rack or None,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
        )
        return ClassicLoop(ClassicMember(terms, self._assignors), parts)

    def _consumer_protocol_terms(self, group_id: str) -> ConsumerProtocolTerms:
        # The member generates its own id, in Kafka's format.
        member_id = urlsafe_b64encode(self._dice.randbytes(16)).rstrip(b"=").decode()
        return ConsumerProtocolTerms(
            group_id=group_id,
            member_id=member_id,
            instance_id=self.config.group_instance_id,
            rack=self.config.client_rack or None,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            assignor=self.config.group_remote_assignor,
        )

    def _check_consumer_protocol(self) -> None:
        if self.config.group_id is None:
            raise UserError("group.protocol=consumer needs a group.id")
        for attribute in CLASSIC_ONLY:
            if self.config.is_given(attribute):
                name = attribute.replace("_", ".")
                raise UserError(
                    f"{name}: not allowed with group.protocol=consumer, where the broker sets it"
                )


def _rename_options(options: Mapping[str, object]) -> dict[str, object]:
    """Names from Kafka's old consumer, which librdkafka still uses, translated."""
    return {_OLD_NAMES.get(name, name): value for name, value in options.items()}


def _with_client_id(config: ConsumerConfig) -> ConsumerConfig:
    """The settings with a default client id, with which member ids begin."""
    if config.client_id:
        return config
    return config.changed(
        client_id=f"consumer-{config.group_id}" if config.group_id else "consumer"
    )


def _strategies(
    options: dict[str, object],
) -> tuple[dict[str, object], tuple[Assignor, ...] | None]:
    """Options without assignor objects, and those objects."""
    strategy = options.get(STRATEGY)
    if strategy is None or isinstance(strategy, str):
        return options, None
    chosen = list(strategy) if isinstance(strategy, Iterable) else [strategy]
    if all(isinstance(item, str) for item in chosen):
        return options, None
    del options[STRATEGY]
    return options, assignors(chosen)

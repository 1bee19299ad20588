"""Checks the options of a producer and builds its core.

Owns: the place where options become settings, and where the system clock and randomness come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from ottla.client.interceptors import ProducerChain, ProducerInterceptor
from ottla.client.partitioners import Partitioner
from ottla.client.producer.buffer.record_intake import Hooks
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.transactions.coordinator_requests import GroupIdentity
from ottla.client.serializers import Serializer
from ottla.config.client import ProducerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError


def core_of(
    options: Mapping[str, object],
    config: Mapping[str, object] | None,
    serializers: tuple[Serializer | None, Serializer | None],
    partitioner: Partitioner | None,
    interceptors: Sequence[ProducerInterceptor],
) -> ProducerCore:
    """The core of a producer with these options; a UserError names an invalid one."""
    for name, function in (
        ("key_serializer", serializers[0]),
        ("value_serializer", serializers[1]),
        ("partitioner", partitioner),
    ):
        if function is not None and not callable(function):
            raise UserError(f"{name}={function!r}: expected a callable")
    for interceptor in interceptors:
        if not isinstance(interceptor, ProducerInterceptor):
            raise UserError(f"interceptors: expected ProducerInterceptor, got {interceptor!r}")
    settings = ProducerConfig.from_options(options, config)
    hooks = Hooks(*serializers, partitioner, ProducerChain(interceptors))
    clock = SystemClock()
    return ProducerCore(settings, hooks, clock, Random(), clock.wall_ns)


class ProducerGroup(NamedTuple):
    """A group whose offsets are committed by a producer that is not a member."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def group_of(group: GroupIdentity | str) -> GroupIdentity:
    if isinstance(group, str):
        return ProducerGroup(group)
    if not hasattr(group, "group_id"):
        raise UserError(f"send_offsets: expected a group id or group metadata, got {group!r}")
    return group

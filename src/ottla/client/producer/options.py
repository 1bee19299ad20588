"""What a user gives to a producer, checked and put together.

Owns: the edge where options become settings and the machine's clock and dice come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from ottla.client.interceptors import ProducerChain, ProducerInterceptor
from ottla.client.partitioners import Partitioner
from ottla.client.producer.buffer.record_intake import Hooks
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.transactions.coordinator_requests import GroupMetadata
from ottla.client.serializers import Serializer
from ottla.config.client import ProducerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError


def core_of(
    options: Mapping[str, Any],
    config: Mapping[str, Any] | None,
    serializers: tuple[Serializer | None, Serializer | None],
    partitioner: Partitioner | None,
    interceptors: Sequence[ProducerInterceptor],
) -> ProducerCore:
    """The core of a producer with these options; a UserError names the one that is wrong."""
    for name, given in (
        ("key_serializer", serializers[0]),
        ("value_serializer", serializers[1]),
        ("partitioner", partitioner),
    ):
        if given is not None and not callable(given):
            raise UserError(f"{name}={given!r}: expected a callable")
    for each in interceptors:
        if not isinstance(each, ProducerInterceptor):
            raise UserError(f"interceptors: expected ProducerInterceptor, got {each!r}")
    settings = ProducerConfig.from_options(options, config)
    hooks = Hooks(*serializers, partitioner, ProducerChain(interceptors))
    clock = SystemClock()
    return ProducerCore(settings, hooks, clock, Random(), clock.wall_ns)


class ProducerGroup(NamedTuple):
    """A group whose offsets are committed without being a member of it."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def group_of(given: GroupMetadata | str) -> GroupMetadata:
    if isinstance(given, str):
        return ProducerGroup(given)
    if not hasattr(given, "group_id"):
        raise UserError(f"send_offsets: expected a group's name or metadata, got {given!r}")
    return given

"""The resources with settings: topics, groups, brokers, and the loggers of a broker.

Owns which resources a request may name, which permissions their settings need, and where these are
stored. The four APIs about settings (DescribeConfigs, AlterConfigs, IncrementalAlterConfigs,
ListConfigResources) share it; `config/changes.py` validates changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.api.api import Context, Fields
from ottla.config.dynamic import Overrides
from ottla.controller.topic_rules import check_name
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId
from ottla.protocol.schema import KioStruct
from ottla.security import acl

SLICE: Final = 20
"""Resources altered before the loop may run other tasks, where nothing waits for the store."""


class ConfigKind(IntEnum):
    """Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    kind: int
    name: str


_GUARDED: Final[Mapping[int, acl.Kind]] = {
    ConfigKind.TOPIC: acl.Kind.TOPIC,
    ConfigKind.BROKER: acl.Kind.CLUSTER,
    ConfigKind.BROKER_LOGGER: acl.Kind.CLUSTER,
    ConfigKind.CLIENT_METRICS: acl.Kind.CLUSTER,
    ConfigKind.GROUP: acl.Kind.GROUP,
}
"""The kind of ACL resource that protects the settings of each kind of resource."""


def require(ctx: Context, operation: acl.Operation, resource: Resource) -> None:
    """KafkaError if the peer may not do this with the settings of a resource."""
    kind = _GUARDED.get(resource.kind)
    if kind is None:
        raise unsupported(resource)
    name = acl.CLUSTER_NAME if kind is acl.Kind.CLUSTER else resource.name
    ctx.require(operation, kind, name)


def known_topic(ctx: Context, name: str, message: str = "") -> str:
    check_name(name)
    if name not in ctx.services.metadata.image.topics:
        raise KafkaError(ErrorCode.unknown_topic_or_partition, message)
    return name


class IdErrors(NamedTuple):
    """How Kafka refuses the id of a broker: one that is not a number, and one of another broker."""

    noun: str
    unexpected: str


OF_SETTINGS: Final = IdErrors(
    "Broker", "Unexpected broker id, expected {} or empty string, but received {}"
)
OF_CHANGES: Final = IdErrors("Node", "Unexpected broker id, expected {}, but received {}")
OF_LOGGERS: Final = IdErrors("Broker", "Unexpected broker id, expected {} but received {}")
OF_LOG_LEVELS: Final = IdErrors("Node", "Unexpected node id. Expected {}, but received {}")


def broker_of(ctx: Context, name: str, errors: IdErrors = OF_SETTINGS) -> BrokerId | None:
    """This broker, or None for all brokers; KafkaError for another broker."""
    if name == "":
        return None
    if not re.fullmatch("[+-]?[0-9]{1,10}", name):
        raise KafkaError(
            ErrorCode.invalid_request, f"{errors.noun} id must be an integer, but it is: {name}"
        )
    if int(name) != ctx.services.broker.broker_id:
        message = errors.unexpected.format(ctx.services.broker.broker_id, name)
        raise KafkaError(ErrorCode.invalid_request, message)
    return ctx.services.broker.broker_id


async def alter_topic(
    ctx: Context, name: str, change: Callable[[Overrides], Overrides], *, dry: bool
) -> None:
    """Validate against the current overrides; the store validates again when it applies it."""
    if not name:
        raise KafkaError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
    known_topic(ctx, name, f"The topic '{name}' does not exist.")
    change(ctx.services.config.topic_overrides(name))
    if not dry:
        await ctx.services.shared.configs.change_topic(name, change)


def group_name(resource: Resource, empty: str = "Default group resources are not allowed.") -> str:
    """Any name except the empty one: there are no default settings of groups."""
    if not resource.name:
        raise KafkaError(ErrorCode.invalid_request, empty)
    return resource.name


async def alter_group(
    ctx: Context, name: str, change: Callable[[Overrides], Overrides], *, dry: bool
) -> None:
    """As for a topic; the group need not exist."""
    change(ctx.services.config.group_overrides(name))
    if not dry:
        await ctx.services.shared.configs.change_group(name, change)


async def alter_broker(
    ctx: Context, broker: BrokerId | None, change: Callable[[Overrides], Overrides], *, dry: bool
) -> None:
    if dry:
        config = ctx.services.config
        change(config.cluster if broker is None else config.broker)
    else:
        await ctx.services.shared.configs.change_broker(broker, change)


async def answer_each(
    resources: Iterable[KioStruct], alter: Callable[[Resource], Awaitable[None]]
) -> Fields:
    """One result per resource of a request; a resource named twice is refused."""
    named = [
        Resource(item.resource_type, item.resource_name) async for item in in_slices(resources)
    ]
    times = Counter(named)
    responses = []
    async for resource in in_slices(times, SLICE):
        code, message = ErrorCode.none, None
        try:
            if times[resource] > 1:
                raise KafkaError(
                    ErrorCode.invalid_request, "Each resource must appear at most once."
                )
            await alter(resource)
        except KafkaError as refusal:
            code, message = refusal.code, refusal.message
        responses.append(result(resource, code, message))
    return {"throttle_time": 0, "responses": responses}


def result(resource: Resource, code: ErrorCode, message: str | None) -> Fields:
    return {
        "error_code": code,
        "error_message": message,
        "resource_type": resource.kind,
        "resource_name": resource.name,
    }


def unsupported(resource: Resource) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, f"Unknown resource type {resource.kind}")

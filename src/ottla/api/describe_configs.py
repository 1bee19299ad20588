"""DescribeConfigs (32): settings of topics, groups, brokers, loggers, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api import loggers
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.config_resources import (
    OF_LOGGERS,
    ConfigKind,
    Resource,
    broker_of,
    group_name,
    known_topic,
    require,
    result,
    unsupported,
)
from ottla.config.entries import (
    Described,
    describe_broker,
    describe_cluster,
    describe_group,
    describe_topic,
)
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Operation

KEY: Final = 32
LOGGER_SOURCE: Final = 6
STRING: Final = 2
SLICE: Final = 10
"""Resources described before the loop may run other tasks: each has dozens of settings."""


async def describe_configs(request: Request, ctx: Context) -> Fields:
    results = [  # encoded one by one: each has dozens of settings
        wire.encode_part(ctx.call, "results", _describe(item, request, ctx))
        async for item in in_slices(request.resources, SLICE)
    ]
    return {"throttle_time": 0, "results": results}


def _describe(item: KioStruct, request: Request, ctx: Context) -> Fields:
    resource = Resource(item.resource_type, item.resource_name)
    try:
        require(ctx, Operation.DESCRIBE_CONFIGS, resource)
        configs = list(_configs(resource, item.configuration_keys, request, ctx))
    except KafkaError as refusal:
        return {**result(resource, refusal.code, refusal.message), "configs": []}
    return {**result(resource, ErrorCode.none, ""), "configs": configs}


def _configs(
    resource: Resource, only: tuple[str, ...] | None, request: Request, ctx: Context
) -> Iterable[Fields]:
    config = ctx.services.config
    match resource.kind:
        case ConfigKind.TOPIC:
            entries = describe_topic(config, known_topic(ctx, resource.name), only)
        case ConfigKind.GROUP:
            name = group_name(resource, "Group name must not be empty")
            entries = describe_group(config, name, only)
        case ConfigKind.BROKER if broker_of(ctx, resource.name) is None:
            entries = describe_cluster(config, only)
        case ConfigKind.BROKER:
            entries = describe_broker(config, only)
        case ConfigKind.BROKER_LOGGER:
            return _loggers(resource, only, ctx)
        case _:
            raise unsupported(resource)
    return [_entry(entry, request) for entry in entries]


def _entry(entry: Described, request: Request) -> Fields:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "is_default": entry.is_default,
        "config_source": entry.source,
        "is_sensitive": entry.sensitive,
        "synonyms": [{"name": s.name, "value": s.value, "source": s.source} for s in synonyms],
        "config_type": entry.kind,
        "documentation": entry.doc if request.include_documentation else None,
    }


def _loggers(resource: Resource, only: tuple[str, ...] | None, ctx: Context) -> Iterable[Fields]:
    if broker_of(ctx, resource.name, OF_LOGGERS) is None:
        raise KafkaError(ErrorCode.invalid_request, "Broker id must not be empty")
    return [
        {
            "name": name,
            "value": level,
            "read_only": False,
            "is_default": False,
            "config_source": LOGGER_SOURCE,
            "is_sensitive": False,
            "synonyms": [],
            "config_type": STRING,
            "documentation": None,
        }
        for name, level in loggers.levels().items()
        if not only or name in only
    ]


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "results": [
            {
                **result(Resource(item.resource_type, item.resource_name), code, message),
                "configs": [],
            }
            for item in request.resources
        ],
    }


API = Api(KEY, "DescribeConfigs", range(1, 5), describe_configs, refuse)

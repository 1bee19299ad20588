"""Settings of topics, brokers, groups and loggers: their values and sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.routing import AlwaysInformed
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import Target, To
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields


class ResourceKind(IntEnum):
    """What can have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """A resource that has settings. A broker without a name: the default of all brokers."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        kind = self.kind.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"every {kind}"

    @classmethod
    def topic(cls, name: str) -> Resource:
        return cls(ResourceKind.TOPIC, name)

    @classmethod
    def broker(cls, id: int | None) -> Resource:
        """A broker's own settings; those of all brokers where `id` is None."""
        return cls(ResourceKind.BROKER, "" if id is None else str(id))

    @classmethod
    def loggers(cls, broker_id: int) -> Resource:
        return cls(ResourceKind.BROKER_LOGGER, str(broker_id))

    @classmethod
    def group(cls, name: str) -> Resource:
        return cls(ResourceKind.GROUP, name)


class ConfigSource(IntEnum):
    """Where a value comes from, with Kafka's numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """A source that sets the value, with the setting's name there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting's current value; None if it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigOp(IntEnum):
    """What to do with one setting; append and subtract are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    op: ConfigOp
    value: str | None = None


async def describe_configs(
    session: Session,
    resources: Iterable[Resource],
    *,
    names: Iterable[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> Outcomes[Resource, dict[str, ConfigEntry]]:
    """The settings of each resource by name; all of them, or those named."""
    keys = None if names is None else list(names)

    async def ask(node: To, resources: list[Resource]) -> Answers[Resource, dict[str, ConfigEntry]]:
        fields = {
            "resources": [
                {**_resource_fields(resource), "configuration_keys": keys} for resource in resources
            ],
            "include_synonyms": synonyms,
            "include_documentation": documentation,
        }
        reply = await session.ask(node, api_keys.DESCRIBE_CONFIGS, fields)
        return {
            _resource(row): result_or_error(
                row, {config.name: _entry(config) for config in row.configs}
            )
            for row in reply.results
        }

    return await session.for_each(resources, OwnBroker(session), ask)


async def incremental_alter_configs(
    session: Session,
    changes: Mapping[Resource, Mapping[str, ConfigChange | str | None]],
    *,
    validate_only: bool = False,
) -> Outcomes[Resource, None]:
    """Change single settings; a text sets one, None resets it to its default."""

    async def ask(node: To, resources: list[Resource]) -> Answers[Resource, None]:
        fields = {
            "resources": [
                {
                    **_resource_fields(resource),
                    "configs": [_change(*change) for change in changes[resource].items()],
                }
                for resource in resources
            ],
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.INCREMENTAL_ALTER_CONFIGS, fields)
        return {_resource(row): result_or_error(row, None) for row in reply.responses}

    return await session.for_each(changes, OwnBroker(session), ask)


async def alter_configs(
    session: Session,
    configs: Mapping[Resource, Mapping[str, str]],
    *,
    validate_only: bool = False,
) -> Outcomes[Resource, None]:
    """Replace all settings of each resource; those not named are reset to their defaults."""

    async def ask(node: To, resources: list[Resource]) -> Answers[Resource, None]:
        fields = {
            "resources": [
                {
                    **_resource_fields(resource),
                    "configs": [
                        {"name": name, "value": v} for name, v in configs[resource].items()
                    ],
                }
                for resource in resources
            ],
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.ALTER_CONFIGS, fields)
        return {_resource(row): result_or_error(row, None) for row in reply.responses}

    return await session.for_each(configs, OwnBroker(session), ask)


async def list_config_resources(
    session: Session, kinds: Iterable[ResourceKind] = ()
) -> list[Resource]:
    """The resources that have settings: of these kinds, or of every kind."""
    fields = {"resource_types": list(kinds)}
    reply = await session.once(Target.ANY, api_keys.LIST_CONFIG_RESOURCES, fields)
    return [
        Resource(ResourceKind(row.resource_type), row.resource_name)
        for row in reply.config_resources
    ]


class OwnBroker(AlwaysInformed):
    """Settings of a broker are requested from that broker, all others from any."""

    def __init__(self, session: Session) -> None:
        self._anywhere = session.anywhere
        self._own_broker = session.own_broker

    async def of(self, item: Resource) -> To:
        own = item.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and item.name
        return await self._own_broker.of(int(item.name)) if own else Target.ANY

    async def on_wrong_broker(self, item: Resource) -> None:
        await self._anywhere.on_wrong_broker(item)


def _resource_fields(resource: Resource) -> Fields:
    return {"resource_type": int(resource.kind), "resource_name": resource.name}


def _resource(row: KioStruct) -> Resource:
    return Resource(ResourceKind(row.resource_type), row.resource_name)


def _change(name: str, change: ConfigChange | str | None) -> Fields:
    if not isinstance(change, ConfigChange):
        change = ConfigChange(ConfigOp.DELETE if change is None else ConfigOp.SET, change)
    return {"name": name, "config_operation": int(change.op), "value": change.value}


def _entry(row: KioStruct) -> ConfigEntry:
    return ConfigEntry(
        row.name,
        row.value,
        _source(row.config_source),
        row.read_only,
        row.is_sensitive,
        tuple(
            Synonym(synonym.name, synonym.value, _source(synonym.source))
            for synonym in row.synonyms
        ),
        row.documentation,
    )


def _source(number: int) -> ConfigSource:
    """UNKNOWN for a number that only newer brokers know."""
    sources = ConfigSource.__members__.values()
    return ConfigSource(number) if number in sources else ConfigSource.UNKNOWN

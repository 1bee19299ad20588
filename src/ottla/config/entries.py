"""DescribeConfigs: each setting's value, its source and its synonyms.

Owns: sources and synonyms. Pure; the handler turns entries into the reply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import dropwhile
from typing import Final, NamedTuple

from ottla.config import group
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig, Overrides
from ottla.config.listener_settings import base_name, is_of_listener
from ottla.config.settings import Setting, Settings, Type
from ottla.config.topic import SYNONYMS


class Source(IntEnum):
    """Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """A source that sets the value; the one with the highest precedence comes first."""

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    kind: Type
    doc: str
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT


# Broker settings of the same quantity in other units; each description lists all of them.
_GROUPS: Final = tuple(names for names in SYNONYMS.values() if len(names) > 1)
_ALIKE: Final = {name: names for names in _GROUPS for name in names}
_INTERNAL: Final = frozenset({"internal.segment.bytes"})


def describe_broker(config: DynamicConfig, only: Collection[str] | None = None) -> list[Described]:
    """Every setting of this broker, or those named."""
    entries = [
        _describe(setting, config.current.text(name), _synonyms(config, name))
        for name, setting in BrokerConfig.SETTINGS.items()
        if _is_selected(name, only)
    ]
    of_listeners = [entry for entry in _of_listeners(config) if _is_selected(entry.name, only)]
    stored = (config.broker, Source.DYNAMIC_BROKER), (config.cluster, Source.DYNAMIC_CLUSTER)
    return entries + of_listeners + _unknown_settings(stored, only)


def _of_listeners(config: DynamicConfig) -> Iterator[Described]:
    """Settings of single listeners that were set."""
    named = {*config.static, *config.cluster, *config.broker}
    for name in sorted(filter(is_of_listener, named)):
        synonyms = list(_all_synonyms(config, (name, base_name(name))))
        setting = BrokerConfig.SETTINGS[base_name(name)]._replace(name=name)
        yield _describe(setting, synonyms[0].value, synonyms)


def describe_cluster(config: DynamicConfig, only: Collection[str] | None = None) -> list[Described]:
    """Only the overrides of all brokers."""
    return [
        _describe(
            BrokerConfig.SETTINGS[base_name(name)]._replace(name=name),
            text,
            [Synonym(name, text, Source.DYNAMIC_CLUSTER)],
        )
        for name, text in sorted(config.cluster.items())
        if base_name(name) in BrokerConfig.SETTINGS and _is_selected(name, only)
    ] + _unknown_settings([(config.cluster, Source.DYNAMIC_CLUSTER)], only)


def describe_topic(
    config: DynamicConfig, name: str, only: Collection[str] | None = None
) -> list[Described]:
    """Every setting of a topic, or those named."""
    own = ResourceSettings(config.topic(name), config.topic_overrides(name), SYNONYMS, Source.TOPIC)
    return list(_describe_resource(config, own, only))


def describe_group(
    config: DynamicConfig, name: str, only: Collection[str] | None = None
) -> list[Described]:
    """Every setting of a group, or those named."""
    own = ResourceSettings(
        config.group(name), config.group_overrides(name), group.SYNONYMS, Source.GROUP
    )
    return list(_describe_resource(config, own, only))


class ResourceSettings(NamedTuple):
    """The settings of one topic or group, and their possible sources."""

    values: Settings
    overrides: Overrides
    synonyms: Mapping[str, tuple[str, ...]]
    source: Source


def _describe_resource(
    config: DynamicConfig, resource: ResourceSettings, only: Collection[str] | None
) -> Iterator[Described]:
    for name, setting in resource.values.SETTINGS.items():
        if not _is_selected(name, only):
            continue
        names = resource.synonyms.get(name)
        synonyms = _synonyms(config, names[0]) if names else []
        value = resource.values.text(name)
        if name in resource.overrides:
            synonyms.insert(0, Synonym(name, value, resource.source))
        yield _describe(setting, value, synonyms)._replace(read_only=False)


def _describe(setting: Setting, value: str | None, synonyms: Sequence[Synonym]) -> Described:
    return Described(
        name=setting.name,
        value=None if setting.sensitive else value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        read_only=setting.scope is None,
        sensitive=setting.sensitive,
        kind=setting.kind,
        doc=setting.doc,
        synonyms=tuple(
            synonym._replace(value=None) if setting.sensitive else synonym for synonym in synonyms
        ),
    )


def _synonyms(config: DynamicConfig, name: str) -> list[Synonym]:
    """The sources that set a broker setting, by precedence.

    As in Kafka, entries before the first one under the setting's own name are omitted: they set
    the same quantity in another unit.
    """
    synonyms = _all_synonyms(config, _ALIKE.get(name, (name,)))
    return list(dropwhile(lambda synonym: synonym.name != name, synonyms))


def _all_synonyms(config: DynamicConfig, names: Sequence[str]) -> Iterator[Synonym]:
    for texts, source in (
        (config.broker, Source.DYNAMIC_BROKER),
        (config.cluster, Source.DYNAMIC_CLUSTER),
        (config.static, Source.STATIC),
    ):
        for name in names:
            if name in texts:
                yield Synonym(name, texts[name], source)
    for name in filter(BrokerConfig.SETTINGS.__contains__, names):
        setting = BrokerConfig.SETTINGS[name]
        default = setting.show(setting.default)
        if default is not None:
            yield Synonym(name, default, Source.DEFAULT)


def _unknown_settings(
    stored: Iterable[tuple[Overrides, Source]], only: Collection[str] | None
) -> list[Described]:
    """Stored settings that this broker does not know, without values: any may be a secret."""
    synonyms: dict[str, list[Synonym]] = {}
    for texts, source in stored:
        for name in texts:
            if base_name(name) not in BrokerConfig.SETTINGS and _is_selected(name, only):
                synonyms.setdefault(name, []).append(Synonym(name, None, source))
    return [
        Described(name, None, sources[0].source, True, True, Type.UNKNOWN, "", tuple(sources))
        for name, sources in sorted(synonyms.items())
    ]


def _is_selected(name: str, only: Collection[str] | None) -> bool:
    return name not in _INTERNAL and (not only or name in only)

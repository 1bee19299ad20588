"""What DescribeConfigs shows: each setting's value, where it comes from, and what else was said.

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
    """One place that has something to say about a setting; the strongest comes first."""

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


# Broker settings that say the same in other units; whichever is described shows all of them.
_GROUPS: Final = tuple(names for names in SYNONYMS.values() if len(names) > 1)
_ALIKE: Final = {name: names for names in _GROUPS for name in names}
_INTERNAL: Final = frozenset({"internal.segment.bytes"})


def describe_broker(config: DynamicConfig, only: Collection[str] | None = None) -> list[Described]:
    """Every setting of this broker, or those named."""
    known = [
        _described(setting, config.current.text(name), _synonyms(config, name))
        for name, setting in BrokerConfig.SETTINGS.items()
        if _wanted(name, only)
    ]
    of_listeners = [entry for entry in _of_listeners(config) if _wanted(entry.name, only)]
    stored = (config.broker, Source.DYNAMIC_BROKER), (config.cluster, Source.DYNAMIC_CLUSTER)
    return known + of_listeners + _unknown(stored, only)


def _of_listeners(config: DynamicConfig) -> Iterator[Described]:
    """What was set for single listeners; there is nothing to show of the others."""
    named = {*config.static, *config.cluster, *config.broker}
    for name in sorted(filter(is_of_listener, named)):
        synonyms = list(_all_synonyms(config, (name, base_name(name))))
        setting = BrokerConfig.SETTINGS[base_name(name)]._replace(name=name)
        yield _described(setting, synonyms[0].value, synonyms)


def describe_cluster(config: DynamicConfig, only: Collection[str] | None = None) -> list[Described]:
    """Only what was changed for all brokers."""
    return [
        _described(
            BrokerConfig.SETTINGS[base_name(name)]._replace(name=name),
            text,
            [Synonym(name, text, Source.DYNAMIC_CLUSTER)],
        )
        for name, text in sorted(config.cluster.items())
        if base_name(name) in BrokerConfig.SETTINGS and _wanted(name, only)
    ] + _unknown([(config.cluster, Source.DYNAMIC_CLUSTER)], only)


def describe_topic(
    config: DynamicConfig, name: str, only: Collection[str] | None = None
) -> list[Described]:
    """Every setting of a topic, or those named."""
    own = Own(config.topic(name), config.topic_overrides(name), SYNONYMS, Source.TOPIC)
    return list(_of_one(config, own, only))


def describe_group(
    config: DynamicConfig, name: str, only: Collection[str] | None = None
) -> list[Described]:
    """The same for a group."""
    own = Own(config.group(name), config.group_overrides(name), group.SYNONYMS, Source.GROUP)
    return list(_of_one(config, own, only))


class Own(NamedTuple):
    """What holds for one topic or group, and where it may have come from."""

    values: Settings
    overrides: Overrides
    synonyms: Mapping[str, tuple[str, ...]]
    source: Source


def _of_one(config: DynamicConfig, own: Own, only: Collection[str] | None) -> Iterator[Described]:
    for name, setting in own.values.SETTINGS.items():
        if not _wanted(name, only):
            continue
        names = own.synonyms.get(name)
        synonyms = _synonyms(config, names[0]) if names else []
        value = own.values.text(name)
        if name in own.overrides:
            synonyms.insert(0, Synonym(name, value, own.source))
        yield _described(setting, value, synonyms)._replace(read_only=False)


def _described(setting: Setting, value: str | None, synonyms: Sequence[Synonym]) -> Described:
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
    """Who has something to say about a broker setting, strongest first.

    As in Kafka, what stands before the first entry under the setting's own name is left out: it
    was said of the same thing in another unit.
    """
    said = _all_synonyms(config, _ALIKE.get(name, (name,)))
    return list(dropwhile(lambda synonym: synonym.name != name, said))


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


def _unknown(
    stored: Iterable[tuple[Overrides, Source]], only: Collection[str] | None
) -> list[Described]:
    """Stored settings that no version of this broker knows, hidden: any may be a secret."""
    synonyms: dict[str, list[Synonym]] = {}
    for texts, source in stored:
        for name in texts:
            if base_name(name) not in BrokerConfig.SETTINGS and _wanted(name, only):
                synonyms.setdefault(name, []).append(Synonym(name, None, source))
    return [
        Described(name, None, said[0].source, True, True, Type.UNKNOWN, "", tuple(said))
        for name, said in sorted(synonyms.items())
    ]


def _wanted(name: str, only: Collection[str] | None) -> bool:
    return name not in _INTERNAL and (not only or name in only)

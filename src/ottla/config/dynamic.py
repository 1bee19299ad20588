"""The current settings: those the broker was started with, and overrides changed since.

Owns: the overrides of this broker, of all brokers and of each topic and group, and the change
listeners. An override of this broker takes precedence over one of all brokers, then comes the
static setting, then the default. Never stores anything: the metadata store does, and its watcher
calls `set_broker`, `set_cluster`, `set_topic` and `set_group`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeAlias, TypeVar

from ottla.config.broker import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.config.listener_settings import OfListeners, base_name
from ottla.config.settings import Settings
from ottla.config.topic import TopicConfig
from ottla.model.errors import UserError

log = logging.getLogger(__name__)

OnBroker: TypeAlias = Callable[[BrokerConfig, BrokerConfig], None]
"""Called with the settings before and after. Settings of topics may have changed with them."""
OnTopic: TypeAlias = Callable[[str], None]
Overrides: TypeAlias = Mapping[str, str]

_NONE: Overrides = MappingProxyType({})
S = TypeVar("S", TopicConfig, GroupConfig)


class Overridden(Generic[S]):
    """The topics, or the groups, that have overrides; all others share one instance."""

    def __init__(self, kind: type[S], broker: BrokerConfig) -> None:
        self.overrides: dict[str, Overrides] = {}
        self.values: dict[str, S] = {}
        self._kind: type[S] = kind
        self._broker = broker
        self._inherited: S = kind.of(broker)

    def __getitem__(self, name: str) -> S:
        return self.values.get(name, self._inherited)

    def follow(self, broker: BrokerConfig) -> None:
        """Apply new settings of the broker."""
        self._broker = broker
        self._inherited = self._kind.of(broker)
        for name in self.overrides:
            self._apply(name)

    def put(self, name: str, overrides: Overrides) -> None:
        """Set its overrides; without any it uses the broker's settings."""
        if overrides:
            self.overrides[name] = dict(overrides)
            self._apply(name)
        else:
            self.overrides.pop(name, None)
            self.values.pop(name, None)

    def _apply(self, name: str) -> None:
        self.values[name] = self._kind.of(
            self._broker, _usable(self._kind, self.overrides[name], name)
        )


class DynamicConfig:
    """`current`: the broker's settings; `topic(name)` and `group(name)`: those of one resource."""

    def __init__(self, static: Overrides) -> None:
        self.static = static
        self.cluster: Overrides = _NONE
        self.broker: Overrides = _NONE
        self.current = BrokerConfig.parse(static)
        self._topics = Overridden(TopicConfig, self.current)
        self._groups = Overridden(GroupConfig, self.current)
        self._on_broker: list[OnBroker] = []
        self._on_topic: list[OnTopic] = []
        self.validators: list[Callable[[BrokerConfig], None]] = []
        """Called before a change of broker settings is stored; a UserError refuses it."""

    def topic(self, name: str) -> TopicConfig:
        return self._topics[name]

    def topic_overrides(self, name: str) -> Overrides:
        return self._topics.overrides.get(name, _NONE)

    def group(self, name: str) -> GroupConfig:
        return self._groups[name]

    def group_overrides(self, name: str) -> Overrides:
        return self._groups.overrides.get(name, _NONE)

    @property
    def groups(self) -> Mapping[str, GroupConfig]:
        """Groups that have overrides, whether they exist or not."""
        return self._groups.values

    def on_broker(self, listener: OnBroker) -> None:
        self._on_broker.append(listener)

    def on_topic(self, listener: OnTopic) -> None:
        self._on_topic.append(listener)

    def set_cluster(self, overrides: Overrides) -> None:
        """Replace the overrides of all brokers."""
        self.cluster = dict(overrides)
        self._apply()

    def set_broker(self, overrides: Overrides) -> None:
        """Replace the overrides of this broker."""
        self.broker = dict(overrides)
        self._apply()

    def set_topic(self, name: str, overrides: Overrides) -> None:
        """Replace the overrides of a topic."""
        self._topics.put(name, overrides)
        for listener in self._on_topic:
            listener(name)

    def set_group(self, name: str, overrides: Overrides) -> None:
        """Replace the overrides of a group."""
        self._groups.put(name, overrides)

    def with_overrides(self, *, cluster: Overrides, broker: Overrides) -> BrokerConfig:
        """The settings with these overrides; a UserError names an invalid one."""
        return BrokerConfig.parse({**self.static, **cluster, **broker})

    def _apply(self) -> None:
        cluster = _usable(
            BrokerConfig, {k: v for k, v in self.cluster.items() if _is_cluster_wide(k)}
        )
        broker = _usable(BrokerConfig, {k: v for k, v in self.broker.items() if _is_dynamic(k)})
        before = self.current
        try:
            self.current = self.with_overrides(cluster=cluster, broker=broker)
        except UserError as error:
            log.error(
                "ignoring the stored dynamic broker settings, which contradict each other: %s",
                error,
            )
            return
        self._topics.follow(self.current)
        self._groups.follow(self.current)
        for listener in self._on_broker:
            listener(before, self.current)


def _is_dynamic(name: str) -> bool:
    setting = BrokerConfig.SETTINGS.get(base_name(name))
    return setting is not None and setting.scope is not None


def _is_cluster_wide(name: str) -> bool:
    return _is_dynamic(name) and BrokerConfig.SETTINGS[base_name(name)].scope == "cluster"


def _usable(kind: type[Settings], overrides: Overrides, resource: str = "") -> dict[str, str]:
    """A stored value of another version that cannot be parsed must not stop the broker."""
    usable: dict[str, str] = {}
    for name, text in overrides.items():
        try:
            kind.read({name: text})
            OfListeners.of({name: text})
        except UserError as error:
            label = f"{kind.__name__.removesuffix('Config').lower()} {resource}".strip()
            log.error("ignoring a stored setting of %s: %s", label, error)
        else:
            usable[name] = text
    return usable

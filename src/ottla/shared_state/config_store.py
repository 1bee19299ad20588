"""Dynamic settings in the metadata store: written by the broker that handles the request, read by
all.

Owns the nodes below `/config` and their change notifications. Each broker reads all settings that
concern it at its start, reads them again when a notification names them, and hands them to its
`DynamicConfig`; nothing needs a restart. Never validates a value: `config/changes.py` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listener_settings import base_name
from ottla.config.settings import Type
from ottla.delay.slices import Slices, sliced
from ottla.model.ids import BrokerId
from ottla.security.password_encoder import CannotDecode, PasswordEncoder, is_encoded
from ottla.security.sasl.scram import ScramCredentials
from ottla.shared_state.change_notifications import (
    NumberedNotifications,
    config_change_notification,
    write_with_notification,
)
from ottla.shared_state.quota_store import QuotaStore
from ottla.store import paths
from ottla.store.nodes import BadNode, ConfigChangeNode, ConfigNode
from ottla.store.port import (
    Create,
    Node,
    NodeExists,
    Op,
    Set,
    Store,
)

log = logging.getLogger(__name__)

NOTIFICATIONS_RETAINED: Final = 1_000
"""A broker that missed more changes than this reads everything again."""
SECRET_BYTES: Final = 32

Overrides = Mapping[str, str]


class ConfigStore:
    def __init__(self, store: Store, config: DynamicConfig, broker_id: BrokerId) -> None:
        self._store = store
        self._config = config
        self._broker_id = broker_id
        self._notifications = NumberedNotifications(
            store, paths.CONFIG_CHANGES, paths.CONFIG_CHANGE_PREFIX, NOTIFICATIONS_RETAINED
        )
        self.quotas: QuotaStore | None = None
        """Reads quotas, which are announced by the same notifications."""
        self.credentials = ScramCredentials()
        self.passwords: PasswordEncoder | None = None
        """Decodes passwords among the broker's settings, as Apache Kafka stored them."""

    async def load(self) -> None:
        """Read all settings. The watch is set first, so that no change is missed.

        It may be called again after it failed.
        """
        await self._notifications.start()
        await self._load_all()

    async def run(self) -> None:
        """Apply changes until cancelled."""
        await self._notifications.run("dynamic settings", self._load_all, self._apply)

    async def load_topics(self, names: Iterable[str]) -> None:
        """Apply the stored settings of these topics; called before a replica is created."""
        slices = Slices()
        for some in sliced(list(names)):  # nothing comes between reading and applying a part
            await slices.took(len(some))
            for name, overrides in (await self._stored(some, paths.topic_config)).items():
                if overrides != self._config.topic_overrides(name):
                    self._config.set_topic(name, overrides)

    async def change_topic(self, name: str, change: Callable[[Overrides], Overrides]) -> None:
        """Write what `change` returns for the stored overrides, and apply it here at once."""
        await self._change(paths.topic_config(name), f"topics/{name}", change)
        await self.load_topics([name])

    async def change_group(self, name: str, change: Callable[[Overrides], Overrides]) -> None:
        """The same for a group, which need not exist."""
        await self._change(paths.group_config(name), f"groups/{paths.quoted(name)}", change)
        await self._load_groups([name])

    async def change_broker(
        self, broker_id: BrokerId | None, change: Callable[[Overrides], Overrides]
    ) -> None:
        """The same for one broker, or with None for all."""
        entity = paths.name(paths.broker_config(broker_id))

        def change_encoded(stored: Overrides) -> Overrides:
            # What cannot be decoded is kept as it is.
            return self._encoded(change({**stored, **self._decoded(stored)}))

        await self._change(paths.broker_config(broker_id), f"brokers/{entity}", change_encoded)
        await self._load_brokers()

    async def change_user(self, name: str, change: Callable[[Overrides], Overrides]) -> None:
        """The same for a user: its credentials."""
        await self._change(paths.user_config(name), f"users/{paths.encoded_user(name)}", change)
        await self._load_users([name])

    async def _change(
        self, path: str, entity: str, change: Callable[[Overrides], Overrides]
    ) -> None:
        def write(node: Node | None) -> Op:
            data = ConfigNode(change(_overrides(path, node))).encode()
            return Create(path, data) if node is None else Set(path, data, node.version)

        await write_with_notification(self._store, path, write, config_change_notification(entity))

    async def _apply(self, notifications: Sequence[Node]) -> None:
        entities = {_entity(notification) for notification in notifications}
        await self.load_topics(sorted(name for kind, name in entities if kind == "topics"))
        await self._load_groups(
            sorted(paths.plain(name) for kind, name in entities if kind == "groups")
        )
        # A change of a user's clients (users/alice/clients/c) changes no credential.
        await self._load_users(
            sorted(paths.plain(name) for kind, name in entities if kind == "users" and name)
        )
        if any(kind == "brokers" for kind, _ in entities):
            await self._load_brokers()
        if self.quotas is not None:
            await self.quotas.load(f"{kind}/{name}" for kind, name in sorted(entities))

    async def _load_all(self) -> None:
        await self._load_brokers()
        await self.load_topics(await self._store.children(paths.CONFIG_TOPICS))
        await self._load_groups(map(paths.plain, await self._store.children(paths.CONFIG_GROUPS)))
        if self.quotas is not None:
            await self.quotas.load_all()
        users = [paths.plain(user) for user in await self._store.children(paths.CONFIG_USERS)]
        self.credentials.keep_only(users)
        await self._load_users(users)

    async def load_secret(self, random: Callable[[int], bytes]) -> None:
        """What derives the salts of unknown users: made once, the same on every broker."""
        node = await self._store.get(paths.SCRAM_SECRET)
        if node is None:
            with suppress(NodeExists):  # another broker was first
                await self._store.create(paths.SCRAM_SECRET, random(SECRET_BYTES))
            node = await self._store.get(paths.SCRAM_SECRET)
        assert node is not None
        self.credentials.secret = node.data

    async def _load_users(self, names: Iterable[str]) -> None:
        for name, overrides in (await self._stored(names, paths.user_config)).items():
            self.credentials.set_user(name, overrides)

    async def _load_groups(self, names: Iterable[str]) -> None:
        for name, overrides in (await self._stored(names, paths.group_config)).items():
            self._config.set_group(name, overrides)

    async def _stored(
        self, names: Iterable[str], path: Callable[[str], str]
    ) -> dict[str, Overrides]:
        names = list(names)
        nodes = await self._store.get_many([path(name) for name in names])
        return {name: _overrides(path(name), node) for name, node in zip(names, nodes, strict=True)}

    async def _load_brokers(self) -> None:
        cluster_path, broker_path = paths.broker_config(None), paths.broker_config(self._broker_id)
        cluster_node, broker_node = await self._store.get_many([cluster_path, broker_path])
        cluster = self._decoded(_overrides(cluster_path, cluster_node))
        if cluster != self._config.cluster:
            self._config.set_cluster(cluster)
        broker = self._decoded(_overrides(broker_path, broker_node))
        if broker != self._config.broker:
            self._config.set_broker(broker)

    def _decoded(self, stored: Overrides) -> Overrides:
        """Without the passwords that cannot be decoded."""
        decoded = dict(stored)
        for name, text in stored.items():
            if not is_encoded(text) or not _is_password(name):
                continue
            try:
                if self.passwords is None:
                    raise CannotDecode("it is encrypted")
                decoded[name] = self.passwords.decode(text)
            except CannotDecode as error:
                log.error("ignoring the stored dynamic setting %s: %s", name, error)
                del decoded[name]
        return decoded

    def _encoded(self, overrides: Overrides) -> Overrides:
        passwords = self.passwords
        if passwords is None:
            return overrides
        return {
            name: passwords.encode(text) if _is_password(name) else text
            for name, text in overrides.items()
        }


def _is_password(name: str) -> bool:
    setting = BrokerConfig.SETTINGS.get(base_name(name))
    return setting is not None and setting.kind is Type.PASSWORD


def _overrides(path: str, node: Node | None) -> Overrides:
    try:
        return {} if node is None or not node.data else ConfigNode.decode(node.data).overrides
    except BadNode as error:
        log.error("cannot parse settings in node %s, ignoring them: %s", path, error)
        return {}


def _entity(node: Node) -> tuple[str, str]:
    try:
        kind, _, name = ConfigChangeNode.decode(node.data).entity.partition("/")
    except BadNode as error:
        log.error("cannot parse a settings change notification, ignoring it: %s", error)
        return "", ""
    return kind, name

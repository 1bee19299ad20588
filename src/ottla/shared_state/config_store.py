"""Settings kept in the store: written by whoever is asked, heard by every broker.

Owns the nodes below `/config` and the notes of changes beside them. Each broker reads all settings
that concern it at its start and again whenever a note names them, and hands them to its
`DynamicConfig`; nothing needs a restart. Never judges a value: `config/changes.py` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.config.dynamic import DynamicConfig
from ottla.model.ids import BrokerId
from ottla.shared_state.change_notifications import (
    config_change_notification,
    delete_notifications,
    write_with_notification,
)
from ottla.store import paths
from ottla.store.nodes import BadNode, ConfigChangeNode, ConfigNode
from ottla.store.port import (
    Create,
    Node,
    Op,
    Session,
    SessionExpired,
    Set,
    Store,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

NOTES_KEPT: Final = 1_000
"""A broker that missed more changes than this reads everything again."""
STORE_RETRY_S: Final = 0.5

Overrides = Mapping[str, str]


class ConfigStore:
    def __init__(self, store: Store, config: DynamicConfig, broker_id: BrokerId) -> None:
        self._store = store
        self._config = config
        self._broker_id = broker_id
        self._changed = asyncio.Event()
        self._watching = False
        self._last_note = -1

    async def load(self) -> None:
        """Everything that concerns this broker. Watched first, so that no change is missed."""
        self._store.on_session(self._session_changed)
        notes = await self._notes()
        self._last_note = max(map(_number, notes), default=self._last_note)
        await self._load_all()

    async def run(self) -> None:
        """Hear of changes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._hear()
            except (StoreUnavailable, SessionExpired) as gone:
                self._watching = False
                log.warning("settings cannot be read: %s", gone)
                await asyncio.sleep(STORE_RETRY_S)
                self._changed.set()

    async def load_topics(self, names: Iterable[str]) -> None:
        """What is stored for these topics now holds. Called before a replica of one is made."""
        for name, overrides in (await self._stored(names, paths.topic_config)).items():
            if overrides != self._config.topic_overrides(name):
                self._config.set_topic(name, overrides)

    async def change_topic(self, name: str, change: Callable[[Overrides], Overrides]) -> None:
        """Write what `change` makes of the stored overrides, note it, and apply it here at once."""
        await self._change(paths.topic_config(name), f"topics/{name}", change)
        await self.load_topics([name])

    async def change_group(self, name: str, change: Callable[[Overrides], Overrides]) -> None:
        """The same for a group, which need not be there."""
        await self._change(paths.group_config(name), f"groups/{paths.quoted(name)}", change)
        await self._load_groups([name])

    async def change_broker(
        self, broker_id: BrokerId | None, change: Callable[[Overrides], Overrides]
    ) -> None:
        """And for one broker, or for all."""
        entity = paths.name(paths.broker_config(broker_id))
        await self._change(paths.broker_config(broker_id), f"brokers/{entity}", change)
        await self._load_brokers()

    async def _change(
        self, path: str, entity: str, change: Callable[[Overrides], Overrides]
    ) -> None:
        def write(node: Node | None) -> Op:
            wanted = ConfigNode(change(_overrides(node))).encode()
            return Create(path, wanted) if node is None else Set(path, wanted, node.version)

        await write_with_notification(self._store, path, write, config_change_notification(entity))

    def _told(self, _: str) -> None:
        self._watching = False
        self._changed.set()

    def _session_changed(self, state: Session) -> None:
        if state is Session.EXPIRED:
            self._watching = False  # the watch went with its session
        elif state is Session.CONNECTED:
            self._changed.set()

    async def _notes(self) -> list[str]:
        if self._watching:
            names = await self._store.children(paths.CONFIG_CHANGES)
        else:
            self._watching = True
            names = await self._store.watch_children(paths.CONFIG_CHANGES, self._told)
        return [name for name in names if name.removeprefix(paths.CONFIG_CHANGE_PREFIX).isdigit()]

    async def _hear(self) -> None:
        notes = sorted(await self._notes(), key=_number)
        new = [note for note in notes if _number(note) > self._last_note]
        if not new:
            return
        missed = _number(new[0]) > self._last_note + 1
        self._last_note = _number(new[-1])
        if missed:
            await self._load_all()
        else:
            await self._apply(new)
        await delete_notifications(self._store, paths.CONFIG_CHANGES, notes, NOTES_KEPT)

    async def _apply(self, notes: list[str]) -> None:
        nodes = await self._store.get_many([f"{paths.CONFIG_CHANGES}/{note}" for note in notes])
        entities = {_entity(node) for node in nodes if node is not None}
        await self.load_topics(sorted(name for kind, name in entities if kind == "topics"))
        await self._load_groups(
            sorted(paths.plain(it) for kind, it in entities if kind == "groups")
        )
        if any(kind == "brokers" for kind, _ in entities):
            await self._load_brokers()

    async def _load_all(self) -> None:
        await self._load_brokers()
        await self.load_topics(await self._store.children(paths.CONFIG_TOPICS))
        await self._load_groups(map(paths.plain, await self._store.children(paths.CONFIG_GROUPS)))

    async def _load_groups(self, names: Iterable[str]) -> None:
        for name, overrides in (await self._stored(names, paths.group_config)).items():
            self._config.set_group(name, overrides)

    async def _stored(
        self, names: Iterable[str], path: Callable[[str], str]
    ) -> dict[str, Overrides]:
        names = list(names)
        nodes = await self._store.get_many([path(name) for name in names])
        return {name: _overrides(node) for name, node in zip(names, nodes, strict=True)}

    async def _load_brokers(self) -> None:
        every, own = await self._store.get_many(
            [paths.broker_config(None), paths.broker_config(self._broker_id)]
        )
        if _overrides(every) != self._config.cluster:
            self._config.set_cluster(_overrides(every))
        if _overrides(own) != self._config.broker:
            self._config.set_broker(_overrides(own))


def _number(note: str) -> int:
    return int(note.removeprefix(paths.CONFIG_CHANGE_PREFIX))


def _overrides(node: Node | None) -> Overrides:
    try:
        return {} if node is None else ConfigNode.decode(node.data).overrides
    except BadNode as error:
        log.error("stored settings cannot be read and are left out: %s", error)
        return {}


def _entity(node: Node) -> tuple[str, str]:
    try:
        kind, _, name = ConfigChangeNode.decode(node.data).entity.partition("/")
    except BadNode as error:
        log.error("a note of changed settings cannot be read: %s", error)
        return "", ""
    return kind, name

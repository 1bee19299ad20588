"""Quotas in the metadata store, where Kafka keeps them: written by the broker that handles the
request, read by all.

Owns the quotas among the settings below `/config/users`, `/config/clients` and `/config/ips`; the
same nodes hold other settings, such as the credentials of users, which stay as they are. All quotas
are read before a broker serves clients, and those that a change notification names again. Never
decides which quota applies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from ottla.delay.slices import in_slices, sliced
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.security.quotas.entities import DEFAULT, Name, QuotaEntity, parse_quotas
from ottla.shared_state.change_notifications import (
    Rewrite,
    config_change_notification,
    rewrite_all,
)
from ottla.store import paths
from ottla.store.nodes import BadNode, ConfigNode
from ottla.store.port import Create, Node, NodeExists, Op, Set, Store

log = logging.getLogger(__name__)

KINDS: Final = ("users", "clients", "ips")
"""The first steps of the entity paths that may have quotas."""
CLIENTS: Final = "clients"
ENTITIES_AT_ONCE: Final = 50
"""Nodes in one write."""

Change = Callable[[Mapping[str, str]], Mapping[str, str]]


class QuotaStore:
    def __init__(self, store: Store, quotas: ClientQuotas) -> None:
        self._store = store
        self._quotas = quotas

    async def load_all(self) -> None:
        """Read the quotas of all entities."""
        self._quotas.follow({})
        await self.load(await self._entity_paths())

    async def load(self, entity_paths: Iterable[str]) -> None:
        """Read the quotas of these entities again; others keep theirs."""
        entities = [entity_of(path) async for path in in_slices(entity_paths)]
        await self._load({entity for entity in entities if entity is not None})

    async def _load(self, entities: Collection[QuotaEntity]) -> None:
        if not entities:
            return
        stored = await self._stored(entities)
        gone = [entity async for entity in in_slices(entities) if entity not in stored]
        quotas = dict(self._quotas.quotas)  # as they are now: others may have been read meanwhile
        for entity in gone:
            quotas.pop(entity, None)
        self._quotas.follow(quotas | stored)

    async def change(self, changes: Mapping[QuotaEntity, Change]) -> None:
        """Write what each change returns for the stored settings, and apply it here at once."""
        for some in sliced(list(changes.items()), ENTITIES_AT_ONCE):
            rewrites = [_rewrite(path_of(entity), change) for entity, change in some]
            await self._create_parents([rewrite.path for rewrite in rewrites])
            await rewrite_all(self._store, rewrites)
        await self._load(changes.keys())

    async def _create_parents(self, written: Iterable[str]) -> None:
        """Of the quotas of a user's clients; others have theirs."""
        parents = sorted({parent for path in written for parent in paths.ancestors(path)})
        nodes = await self._store.get_many(parents)
        for parent, node in zip(parents, nodes, strict=True):
            if node is None:
                with suppress(NodeExists):  # another broker creates it too
                    await self._store.create(parent, b"")

    async def _entity_paths(self) -> list[str]:
        entity_paths: list[str] = []
        for kind in KINDS:
            for step in await self._children(f"/config/{kind}"):
                path = f"{kind}/{step}"
                entity_paths.append(path)
                if kind == "users":
                    clients = await self._children(f"/config/{path}/{CLIENTS}")
                    entity_paths += [f"{path}/{CLIENTS}/{client}" for client in clients]
        return entity_paths

    async def _children(self, path: str) -> list[str]:
        return [] if await self._store.get(path) is None else await self._store.children(path)

    async def _stored(
        self, entities: Iterable[QuotaEntity]
    ) -> dict[QuotaEntity, Mapping[str, float]]:
        quotas: dict[QuotaEntity, Mapping[str, float]] = {}
        for some in sliced(list(entities), ENTITIES_AT_ONCE):
            await asyncio.sleep(0)
            nodes = await self._store.get_many([f"/config/{path_of(entity)}" for entity in some])
            for entity, node in zip(some, nodes, strict=True):
                path = path_of(entity)
                try:
                    found = parse_quotas(entity, _settings(path, node))
                except ValueError as error:
                    log.error(
                        "cannot parse quotas in node /config/%s, ignoring them: %s", path, error
                    )
                    continue
                if found:
                    quotas[entity] = found
        return quotas


def _rewrite(entity_path: str, change: Change) -> Rewrite:
    path = f"/config/{entity_path}"

    def write(node: Node | None) -> Op:
        data = ConfigNode(change(_settings(path, node))).encode()
        return Create(path, data) if node is None else Set(path, data, node.version)

    return Rewrite(path, write, config_change_notification(entity_path))


def path_of(entity: QuotaEntity) -> str:
    """The entity path: the node below /config, and what a change notification names."""
    user, client_id, ip = entity
    if ip is not None:
        return f"ips/{_step(ip)}"
    steps = []
    if user is not None:
        steps += ["users", _step(user)]
    if client_id is not None:
        steps += [CLIENTS, _step(client_id)]
    return "/".join(steps)


def entity_of(path: str) -> QuotaEntity | None:
    """The inverse of `path_of`; None for the path of something else."""
    match path.split("/"):
        case ["users", user]:
            return QuotaEntity(_name(user))
        case ["users", user, "clients", client_id]:
            return QuotaEntity(_name(user), _name(client_id))
        case ["clients", client_id]:
            return QuotaEntity(None, _name(client_id))
        case ["ips", ip]:
            return QuotaEntity(ip=_name(ip))
    return None


def _step(name: Name) -> str:
    return DEFAULT.value if name is DEFAULT else paths.encoded_user(str(name))


def _name(step: str) -> Name:
    return DEFAULT if step == DEFAULT.value else paths.plain(step)


def _settings(path: str, node: Node | None) -> Mapping[str, str]:
    try:
        return {} if node is None or not node.data else ConfigNode.decode(node.data).overrides
    except BadNode as error:
        log.error("cannot parse settings in node %s, ignoring them: %s", path, error)
        return {}

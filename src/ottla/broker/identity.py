"""Who this broker is: its id, its cluster, and that its directories are its own and all there.

Owns the order of asking: the settings, the directories' meta.properties, the store. A contradiction
stops the start with a message that names both sides.

The store remembers each directory the broker has had. One that was wiped, replaced or left out
took acknowledged records with it, and what is gone would look like empty partitions: the broker
starts without it only on the operator's word (`log.dirs.accept.missing`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from random import Random
from typing import NamedTuple
from uuid import UUID

from ottla.broker.metadata_store import MetadataStoreChoice
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.meta_properties import check_cluster, missing_directories
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.shared_state.registration import create_root_nodes, generate_broker_id
from ottla.store import paths
from ottla.store.nodes import LogDirsNode
from ottla.store.port import Store

log = logging.getLogger(__name__)

FLAG = "log.dirs.accept.missing=true"


class BrokerIdentity(NamedTuple):
    broker_id: BrokerId
    cluster_id: str


async def identify(
    home: MetadataStoreChoice, directories: LogDirectories, dynamic: DynamicConfig, dice: Random
) -> BrokerIdentity:
    """Settle id and cluster, and write both down in every directory.

    An id that nobody set is only a default: what the directories say goes before it.
    """
    store, config = home.store, dynamic.current
    accepts = config.log_dirs_accept_missing
    default = None if config.broker_id < 0 else BrokerId(config.broker_id)
    known = directories.identity(default if "broker.id" in dynamic.static else None)
    if known.cluster_id is not None and await store.get(paths.CLUSTER_ID) is None:
        _without_store(directories, home.where, known.cluster_id, accepts)
    cluster_id = await create_root_nodes(store, known.cluster_id, dice)
    check_cluster(known, cluster_id)
    broker_id = default if known.broker_id is None else known.broker_id
    if broker_id is None:
        broker_id = await generate_broker_id(store, config.reserved_broker_max_id)
    kept = await _kept(store, directories, broker_id, accepts)
    directories.claim(broker_id, cluster_id)
    await _remember(store, broker_id, {**kept, **_present(directories)})
    return BrokerIdentity(broker_id, cluster_id)


def _without_store(directories: LogDirectories, where: str, cluster_id: str, accepts: bool) -> None:
    """The directories belong to a cluster of which the store knows nothing."""
    there = ", ".join(str(one.path) for one in directories.online if one.meta.cluster_id)
    said = (
        f"log.dirs: {there} has data of cluster {cluster_id}, "
        f"but there is no metadata of it in {where}"
    )
    if not accepts:
        raise UserError(
            f"{said}: its disk was wiped or replaced, the order of log.dirs has changed, or Apache "
            f"Kafka wrote it (see ottla adopt); {FLAG} starts without the topics in it"
        )
    log.warning("%s; accepted", said)


async def _kept(
    store: Store, directories: LogDirectories, broker_id: BrokerId, accepts: bool
) -> Mapping[UUID, str]:
    """The directories that are not here but may be back: as many as cannot be read now."""
    node = await store.get(paths.log_dirs(broker_id))
    registered = {} if node is None else LogDirsNode.decode(node.data).paths
    gone = missing_directories(registered, _present(directories))
    unreadable = len(directories.all) - len(directories.online)
    if len(gone) <= unreadable:
        return {id_: registered[id_] for id_ in gone}
    listed = ", ".join(sorted(registered[id_] for id_ in gone))
    if await store.get(paths.broker(broker_id)) is not None:
        raise UserError(
            f"broker.id={broker_id}: a broker with this id is already running, or was a moment "
            f"ago, with its data in {listed}; each needs an id of its own"
        )
    if not accepts:
        raise UserError(
            f"log.dirs: what broker {broker_id} had in {listed} is gone: the disk was wiped, "
            f"replaced or left out; put it back, or {FLAG} starts without its records"
        )
    log.warning("what broker %d had in %s is gone; accepted", broker_id, listed)
    return {}


async def _remember(store: Store, broker_id: BrokerId, known: Mapping[UUID, str]) -> None:
    path, data = paths.log_dirs(broker_id), LogDirsNode(known).encode()
    node = await store.get(path)
    if node is None:
        await store.create(path, data)
    elif node.data != data:
        await store.set(path, data)


def _present(directories: LogDirectories) -> dict[UUID, str]:
    return {
        one.meta.directory_id: str(one.path)
        for one in directories.online
        if one.meta.directory_id is not None
    }

"""The identity of a broker: its id, its cluster id, and the log directories that belong to it.

Owns the order of the sources: the settings, `meta.properties` in the directories, the metadata
store. If they contradict each other the broker does not start; the error names both sides.

The metadata store lists every log directory the broker has used. If one was wiped, replaced or
removed from `log.dirs`, acknowledged records went with it and its partitions would look empty. A
single node starts without it only if `log.dirs.accept.missing` is set. In a cluster the broker
starts, and its registration tells the controller, which first removes it from every ISR and then
remembers the new directories (`controller/lost_disks.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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
from ottla.store.port import RequiredNode, Store

log = logging.getLogger(__name__)

ACCEPT_MISSING = "log.dirs.accept.missing=true"


class BrokerIdentity(NamedTuple):
    broker_id: BrokerId
    cluster_id: str
    log_dirs: LogDirsNode | None = None
    """The log directories, if the store remembers others that were lost."""


async def identify(
    store_choice: MetadataStoreChoice,
    directories: LogDirectories,
    dynamic: DynamicConfig,
    dice: Random,
) -> BrokerIdentity:
    """Determine broker id and cluster id, and write both into every directory.

    A `broker.id` that is not set explicitly is only a default: `meta.properties` takes precedence.
    """
    store, config = store_choice.store, dynamic.current
    accepts = config.log_dirs_accept_missing
    default = None if config.broker_id < 0 else BrokerId(config.broker_id)
    stored = directories.identity(default if "broker.id" in dynamic.static else None)
    if stored.cluster_id is not None and await store.get(paths.CLUSTER_ID) is None:
        _check_missing_store(directories, store_choice, stored.cluster_id, accepts)
    cluster_id = await create_root_nodes(store, stored.cluster_id, dice)
    check_cluster(stored, cluster_id)
    await _require_cluster(store)
    broker_id = default if stored.broker_id is None else stored.broker_id
    if broker_id is None:
        broker_id = await generate_broker_id(store, config.reserved_broker_max_id)
    remembered = await _remembered_directories(store, broker_id)
    missing = missing_directories(remembered, _present(directories))
    unreadable = len(directories.all) - len(directories.online)
    lost = len(missing) > unreadable  # else they are absent because their disk cannot be read now
    if lost and config.zookeeper_connect is None:
        _check_lost(broker_id, [remembered[id_] for id_ in missing], accepts)
    directories.claim(broker_id, cluster_id)
    kept = {} if lost else {id_: remembered[id_] for id_ in missing}
    log_dirs = LogDirsNode({**kept, **_present(directories)})
    if lost and config.zookeeper_connect is not None:
        log.warning(
            "log directories of broker %d are missing: %s; it leaves every ISR and refills",
            broker_id,
            ", ".join(sorted(remembered[id_] for id_ in missing)),
        )
        return BrokerIdentity(broker_id, cluster_id, log_dirs)
    await _register_directories(store, broker_id, log_dirs)
    return BrokerIdentity(broker_id, cluster_id)


async def _require_cluster(store: Store) -> None:
    """A broker that runs must not join an empty store either, whatever became of its data."""
    node = await store.get(paths.CLUSTER_ID)
    if node is not None:
        store.required = RequiredNode(paths.CLUSTER_ID, node.data)


def _check_missing_store(
    directories: LogDirectories, choice: MetadataStoreChoice, cluster_id: str, accepts: bool
) -> None:
    """The directories belong to a cluster that the metadata store does not know."""
    with_data = ", ".join(
        str(directory.path) for directory in directories.online if directory.meta.cluster_id
    )
    problem = (
        f"log.dirs: {with_data} has data of cluster {cluster_id}, "
        f"but {choice.where} has no metadata of that cluster"
    )
    if not accepts:
        raise UserError(
            f"{problem}: {choice.why_empty}; to start without the topics in it set {ACCEPT_MISSING}"
        )
    log.warning("%s; starting without its topics because of %s", problem, ACCEPT_MISSING)


async def _remembered_directories(store: Store, broker_id: BrokerId) -> Mapping[UUID, str]:
    node = await store.get(paths.log_dirs(broker_id))
    return {} if node is None else LogDirsNode.decode(node.data).paths


def _check_lost(broker_id: BrokerId, lost: Sequence[str], accepts: bool) -> None:
    """There is no other replica: an operator must accept the loss."""
    listed = ", ".join(sorted(lost))
    if not accepts:
        raise UserError(
            f"log.dirs: log directories of broker {broker_id} are missing: {listed}: the disk was "
            "wiped or replaced, or log.dirs no longer names them; restore them, or set "
            f"{ACCEPT_MISSING} to start without their records"
        )
    log.warning(
        "log directories of broker %d are missing: %s; starting without their records because of "
        "%s",
        broker_id,
        listed,
        ACCEPT_MISSING,
    )


async def _register_directories(store: Store, broker_id: BrokerId, log_dirs: LogDirsNode) -> None:
    path, data = paths.log_dirs(broker_id), log_dirs.encode()
    node = await store.get(path)
    if node is None:
        await store.create(path, data)
    elif node.data != data:
        await store.set(path, data)


def _present(directories: LogDirectories) -> dict[UUID, str]:
    return {
        directory.meta.directory_id: str(directory.path)
        for directory in directories.online
        if directory.meta.directory_id is not None
    }

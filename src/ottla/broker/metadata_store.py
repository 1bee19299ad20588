"""Where a broker's metadata live: in its first log directory, or on a ZooKeeper ensemble.

Owns the choice, and what is said when the place cannot be entered. Never looks at what is there:
nothing above the store knows which home it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.model.errors import UserError
from ottla.store.port import Store, StoreUnavailable

if TYPE_CHECKING:
    from ottla.broker.environment import Environment


class MetadataStoreChoice(NamedTuple):
    store: Store
    where: str
    """What an operator knows the place by."""


def choose(
    config: BrokerConfig, directories: LogDirectories, world: Environment
) -> MetadataStoreChoice:
    connect = config.zookeeper_connect
    if connect is not None:
        return MetadataStoreChoice(world.join_store(config), f"ZooKeeper at {connect}")
    first = _first(directories)
    return MetadataStoreChoice(world.open_store(first), str(first))


async def open_store(home: MetadataStoreChoice) -> None:
    """Open the session; an ensemble that is not there is the operator's to mend."""
    try:
        await home.store.start()
    except StoreUnavailable as gone:
        raise UserError(f"the metadata cannot be reached: {home.where}: {gone.strerror}") from gone


def zookeeper(config: BrokerConfig) -> Store:
    """The ensemble that `zookeeper.connect` names."""
    try:
        from ottla.store.zookeeper import ZooKeeperStore
    except ImportError:
        raise UserError("zookeeper.connect needs kazoo: pip install 'ottla[cluster]'") from None
    assert config.zookeeper_connect is not None, "asked for only where it is set"
    return ZooKeeperStore(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
    )


def _first(directories: LogDirectories) -> Path:
    """The first directory: what the whole broker needs is in it, so it cannot be done without."""
    first = directories.all[0]
    if not first.online:
        raise UserError(
            f"log.dirs: {first.path}, the first one, holds the metadata and cannot be used: "
            f"{first.failure}"
        )
    return first.path

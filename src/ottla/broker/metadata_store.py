"""Opens the metadata store of a broker: embedded in its first log directory, or ZooKeeper.

Owns the choice of the backend and the error when it cannot be opened. Never reads what is stored:
nothing above the store depends on the backend.
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
    """The location, for messages."""


def choose_store(
    config: BrokerConfig, directories: LogDirectories, environment: Environment
) -> MetadataStoreChoice:
    connect = config.zookeeper_connect
    if connect is not None:
        return MetadataStoreChoice(environment.join_store(config), f"ZooKeeper at {connect}")
    first = _first_directory(directories)
    return MetadataStoreChoice(environment.open_store(first), str(first))


async def open_store(choice: MetadataStoreChoice) -> None:
    """Open the session; a store that does not answer is the operator's to repair."""
    try:
        await choice.store.start()
    except StoreUnavailable as error:
        raise UserError(f"metadata store unavailable: {choice.where}: {error.strerror}") from error


def zookeeper(config: BrokerConfig) -> Store:
    """The ensemble that `zookeeper.connect` names."""
    try:
        from ottla.store.zookeeper import ZooKeeperStore
    except ImportError:
        raise UserError("zookeeper.connect requires kazoo: pip install 'ottla[cluster]'") from None
    assert config.zookeeper_connect is not None, "called only if zookeeper.connect is set"
    return ZooKeeperStore(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
    )


def _first_directory(directories: LogDirectories) -> Path:
    """The first log directory holds the embedded store: the broker cannot start without it."""
    first = directories.all[0]
    if not first.online:
        raise UserError(
            f"log.dirs: cannot use {first.path}, the first log directory, which holds the "
            f"metadata store: {first.failure}"
        )
    return first.path

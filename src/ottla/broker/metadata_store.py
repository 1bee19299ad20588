"""Opens the metadata store of a broker: embedded in its first log directory, or ZooKeeper.

Owns the choice of the backend and the error when it cannot be opened. Never reads what is stored:
nothing above the store depends on the backend.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.config.broker import BrokerConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import UserError
from ottla.store.port import Store, StoreUnavailable

if TYPE_CHECKING:
    from ottla.broker.environment import Environment

log = logging.getLogger(__name__)

Result = TypeVar("Result")
RETRY_S: Final = 0.5


class MetadataStoreChoice(NamedTuple):
    store: Store
    where: str
    """The location, for messages."""
    why_empty: str
    """Why it may lack the metadata of a broker that has run before, and what to do."""


def choose_store(
    config: BrokerConfig, directories: LogDirectories, environment: Environment
) -> MetadataStoreChoice:
    connect = config.zookeeper_connect
    if connect is not None:
        why_empty = (
            "it lost its data, or zookeeper.connect names another ensemble or path; restore the "
            f"last export (ottla metadata import FILE --to zookeeper://{connect}), or correct "
            "zookeeper.connect"
        )
        store = environment.join_store(config)
        return MetadataStoreChoice(store, f"ZooKeeper at {connect}", why_empty)
    first = _first_directory(directories)
    why_empty = (
        "the disk was wiped or replaced, the order of log.dirs has changed, the metadata were "
        "moved to ZooKeeper (then set zookeeper.connect), or Apache Kafka wrote the data (then run "
        "ottla adopt)"
    )
    return MetadataStoreChoice(environment.open_store(first), str(first), why_empty)


async def open_store(choice: MetadataStoreChoice) -> None:
    """Open the session; a store that does not answer is the operator's to repair."""
    try:
        await choice.store.start()
    except StoreUnavailable as error:
        raise UserError(f"metadata store unavailable: {choice.where}: {error.strerror}") from error


async def retry_store_reads(
    step: Callable[[], Awaitable[Result]], clock: Clock, config: BrokerConfig
) -> Result:
    """Repeat a step of the start that the loss of the connection to ZooKeeper ended.

    StoreUnavailable alone is retried, for `zookeeper.connection.timeout.ms`. Each step reads what
    it has written before it writes again. The embedded store has no connection to lose.
    """
    deadline_ms = MonoMs(clock.mono_ms() + _connection_timeout_ms(config))
    while True:
        try:
            return await step()
        except StoreUnavailable as error:
            if config.zookeeper_connect is None or clock.mono_ms() >= deadline_ms:
                raise
            log.warning("metadata store unavailable during the start, retrying: %s", error)
        await asyncio.sleep(RETRY_S)


def _connection_timeout_ms(config: BrokerConfig) -> int:
    timeout_ms = config.zookeeper_connection_timeout_ms
    return config.zookeeper_session_timeout_ms if timeout_ms is None else timeout_ms


def _first_directory(directories: LogDirectories) -> Path:
    """The first log directory holds the embedded store: the broker cannot start without it."""
    first = directories.all[0]
    if not first.online:
        raise UserError(
            f"log.dirs: cannot use {first.path}, the first log directory, which holds the "
            f"metadata store: {first.failure}"
        )
    return first.path

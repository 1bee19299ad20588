"""Credentials of a broker that does not run: written into its metadata store directly.

Owns: the lock on the data directory meanwhile. For the first user of a cluster, who cannot be
added through a broker that asks everyone to log in.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.properties import read_file
from ottla.log.files import RealDisk
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.security.sasl.scram import ITERATIONS_DEFAULT, SALT_BYTES, Credential, salted_password
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.registration import create_root_nodes
from ottla.shared_state.zookeeper_access import zookeeper_store
from ottla.store.embedded import EmbeddedStore
from ottla.store.port import Store, StoreError

GENERATED_BYTES: Final = 18
LOCK_FILE: Final = ".lock"
META: Final = "meta.properties"


def set_credential(config: BrokerConfig, user: str, password: str, mechanism: str) -> None:
    """Set a user's credential in the store of the broker with these settings."""
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(mechanism, password, salt, ITERATIONS_DEFAULT)
    credential = Credential.of_salted(mechanism, salted, salt, ITERATIONS_DEFAULT)
    if config.zookeeper_connect is not None:
        asyncio.run(_write(zookeeper_store(config), user, {mechanism: str(credential)}, None))
        return
    directory = Path(config.data_dirs[0])
    os.umask(int(config.log_dirs_umask, 8))  # as the broker, whose files these will be
    disk = RealDisk(1)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = disk.lock(directory / LOCK_FILE)
    except BlockingIOError:
        raise UserError(
            f"{directory}: a broker uses this directory; omit --offline, or stop it first"
        ) from None
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from None
    try:
        credentials, cluster_id = {mechanism: str(credential)}, _cluster_id(directory)
        asyncio.run(_write(EmbeddedStore.at(directory), user, credentials, cluster_id))
    finally:
        lock.release()


def generated_password() -> str:
    return secrets.token_urlsafe(GENERATED_BYTES)


async def _write(
    store: Store, user: str, credentials: Mapping[str, str], cluster_id: str | None
) -> None:
    try:
        await store.start()
        await create_root_nodes(store, cluster_id, Random())
        configs = ConfigStore(store, DynamicConfig({}), BrokerId(0))
        await configs.change_user(user, lambda stored: {**stored, **credentials})
    except StoreError as error:
        raise UserError(f"cannot write to the metadata store: {error}") from None
    finally:
        await store.close()


def _cluster_id(directory: Path) -> str | None:
    """Of a broker that has run in this directory before."""
    file = directory / META
    return read_file(file).get("cluster.id") if file.exists() else None

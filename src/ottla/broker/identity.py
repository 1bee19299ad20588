"""Who this broker is: its id, its cluster, and that its directories are its own.

Owns the order of asking: the settings, the directories' meta.properties, the store. A contradiction
stops the start with a message that names both sides.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.controller.registration import generate_broker_id, lay_ground
from ottla.log.directories import LogDirectories
from ottla.log.meta_properties import check_cluster
from ottla.model.ids import BrokerId
from ottla.store.port import Store


class BrokerIdentity(NamedTuple):
    broker_id: BrokerId
    cluster_id: str


async def identify(
    store: Store, directories: LogDirectories, config: BrokerConfig, dice: Random
) -> BrokerIdentity:
    """Settle id and cluster, and write both down in every directory."""
    configured = None if config.broker_id < 0 else BrokerId(config.broker_id)
    known = directories.identity(configured)
    cluster_id = await lay_ground(store, known.cluster_id, dice)
    check_cluster(known, cluster_id)
    broker_id = known.broker_id
    if broker_id is None:
        broker_id = await generate_broker_id(store, config.reserved_broker_max_id)
    directories.claim(broker_id, cluster_id)
    return BrokerIdentity(broker_id, cluster_id)

"""Which brokers a command of Kafka's talks to.

Owns: the look-up in ZooKeeper that `--zookeeper` asks for. Never: keeps a session there longer.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import Final

from ottla.cli.kafka.arguments import properties
from ottla.cli.profile.cluster import DEFAULT_SERVER, Cluster
from ottla.cli.profile.profiles import SERVERS
from ottla.model.errors import UserError
from ottla.store import paths
from ottla.store.nodes import BrokerNode
from ottla.store.port import NoNode, StoreError

SESSION_MS: Final = 6_000
CONNECT_MS: Final = 5_000
PLAIN: Final = "PLAINTEXT"


def bootstrap(options: Namespace) -> str:
    """`host:port,...` as the options give it."""
    named: str | None = options.bootstrap_server or getattr(options, "broker_list", None)
    if options.zookeeper and named:
        raise UserError("--zookeeper and --bootstrap-server: give one of them")
    settings = properties(getattr(options, "command_config", None))
    if options.zookeeper:
        return Cluster(asyncio.run(registered_brokers(options.zookeeper)), settings)
    return Cluster(named or settings.get(SERVERS) or DEFAULT_SERVER, settings)


async def registered_brokers(connect: str, *, patience_ms: int = CONNECT_MS) -> str:
    """The brokers that have registered in this ensemble, under its chroot."""
    try:
        from ottla.store.zookeeper import ZooKeeperStore
    except ImportError:
        raise UserError("--zookeeper needs kazoo: pip install 'ottla[cluster]'") from None
    store = ZooKeeperStore(
        connect, session_timeout_ms=SESSION_MS, connection_timeout_ms=patience_ms
    )
    try:
        await store.start()
        ids = await store.children(paths.BROKER_IDS)
        nodes = await store.get_many([f"{paths.BROKER_IDS}/{id}" for id in ids])
    except NoNode:
        nodes = []
    except (StoreError, OSError) as error:
        raise ConnectionError(f"cannot reach ZooKeeper at {connect}: {error}") from None
    finally:
        await store.close()
    addresses = [
        f"{each.host}:{each.port}"
        for node in nodes
        if node is not None
        for each in BrokerNode.decode(node.data).endpoints
        if each.protocol == PLAIN
    ]
    if not addresses:
        raise ConnectionError(f"no broker is registered in ZooKeeper at {connect}")
    return ",".join(addresses)

"""`ottla metadata move`: the metadata of a stopped broker, from its directory to ZooKeeper or back.

A single broker can so become the first one of a cluster, and records, topics, settings and access
rules stay what they are. The log directories are locked meanwhile. What is moved is removed from
its old place only after it is complete at the new one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.adopt import lock_directory
from ottla.cli.console import table
from ottla.cli.metadata.tree_copy import TreeNode, delete_tree, is_empty, read_tree, write_tree
from ottla.config.broker import BrokerConfig
from ottla.config.properties import load
from ottla.log.directories.meta_properties import FILE_NAME as META
from ottla.log.directories.meta_properties import MetaProperties
from ottla.log.files import RealDisk
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.shared_state.zookeeper_access import zookeeper_store
from ottla.store import paths
from ottla.store.embedded import EmbeddedStore
from ottla.store.nodes import ClusterIdNode, TopicNode
from ottla.store.port import Store, StoreUnavailable
from ottla.store.sqlite_database import FILE_NAME

EMBEDDED: Final = "embedded"
SCHEME: Final = "zookeeper://"
SESSION_MS: Final = 10_000
MOVED: Final = ".moved"

ServerConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Take TLS and login of ZooKeeper from server.properties."),
]


def move(
    *,
    to: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="Move to zookeeper://HOST:PORT,.../PATH or to embedded."
        ),
    ],
    data_dir: Annotated[
        str,
        typer.Option(metavar="DIR,...", help="Name the broker's log.dirs, in their order."),
    ],
    from_: Annotated[
        str,
        typer.Option("--from", metavar="zookeeper://...", help="Name the source of --to embedded."),
    ] = "",
    server_config: ServerConfig = None,
) -> int:
    """Move the metadata of a stopped broker to ZooKeeper, or back.

    The target must be empty. Records stay where they are.

    Examples:
      ottla metadata move --data-dir ./data --to zookeeper://localhost:2181/prod
      ottla metadata move --data-dir ./data --from zookeeper://localhost:2181/prod --to embedded
    """
    directories = [Path(text.strip()) for text in data_dir.split(",")]
    connect = zookeeper_address(
        "--from" if to == EMBEDDED else "--to", from_ if to == EMBEDDED else to
    )
    access = zookeeper_config(connect, server_config)
    with ExitStack() as locks:
        for path in directories:
            lock_directory(path, RealDisk(), locks)
        meta = _meta(directories[0])
        embedded = directories[0] / FILE_NAME
        if to == EMBEDDED:
            nodes = asyncio.run(_to_embedded(access, embedded, meta))
            hint = "Remove zookeeper.connect from server.properties"
        else:
            if not embedded.exists():
                raise UserError(
                    f"{embedded}: no such file; expected the metadata store of a stopped broker"
                )
            nodes = asyncio.run(_to_zookeeper(access, embedded))
            embedded.rename(embedded.with_name(f"{FILE_NAME}{MOVED}"))
            hint = f"Add zookeeper.connect={connect} to server.properties"
    show_counts("moved", nodes)
    print(f"The metadata were moved. {hint}, then start the broker.")
    return 0


async def _to_zookeeper(access: BrokerConfig, embedded: Path) -> list[TreeNode]:
    source = EmbeddedStore.at(embedded.parent)
    target = await open_zookeeper(access)
    try:
        await check_empty(target, access)
        await source.start()
        try:
            nodes = await read_tree(source)
            if not any(node.path == paths.CLUSTER_ID for node in nodes):
                raise UserError(f"{embedded}: no cluster id: no broker has used this store")
            await write_tree(target, nodes)
        finally:
            await source.close()
    finally:
        await target.close()
    return nodes


async def _to_embedded(
    access: BrokerConfig, embedded: Path, meta: MetaProperties
) -> list[TreeNode]:
    source = await open_zookeeper(access)
    try:
        nodes = await read_tree(source)
        await _check_source(source, access.zookeeper_connect or "", nodes, meta)
        os.umask(int(access.log_dirs_umask, 8))  # users' credentials are among the nodes
        target = EmbeddedStore.at(embedded.parent)
        await target.start()
        try:
            if not await is_empty(target):
                raise UserError(f"{embedded} is not empty: move the file away")
            await write_tree(target, nodes)
        finally:
            await target.close()
        await delete_tree(source, nodes)
    finally:
        await source.close()
    return nodes


async def check_empty(target: Store, access: BrokerConfig) -> None:
    """UserError if the path in ZooKeeper has nodes of anybody."""
    if not await is_empty(target):
        raise UserError(
            f"{SCHEME}{access.zookeeper_connect} is not empty: choose another path, or delete it "
            "with ZooKeeper's shell (deleteall)"
        )


async def _check_source(
    source: Store, connect: str, nodes: Sequence[TreeNode], meta: MetaProperties
) -> None:
    data = {node.path: node.data for node in nodes}
    if paths.CLUSTER_ID not in data:
        raise UserError(f"{SCHEME}{connect} has no metadata of a cluster")
    cluster_id = ClusterIdNode.decode(data[paths.CLUSTER_ID]).id
    if cluster_id != meta.cluster_id:
        raise UserError(
            f"{SCHEME}{connect} has the metadata of cluster {cluster_id}, the log directories "
            f"belong to cluster {meta.cluster_id}"
        )
    running = await source.children(paths.BROKER_IDS)
    if running:
        raise UserError(f"broker {running[0]} is registered in {SCHEME}{connect}: stop it first")
    for path, content in data.items():
        if paths.parent(path) == paths.TOPICS:
            _check_replicas(paths.name(path), TopicNode.decode(content), meta.broker_id)


def _check_replicas(topic: str, node: TopicNode, broker_id: BrokerId | None) -> None:
    others = {id for replicas in node.partitions.values() for id in replicas} - {broker_id}
    if others:
        raise UserError(
            f"topic {topic} has replicas on broker {min(others)}: the embedded store serves a "
            f"single broker; first move all partitions to broker {broker_id}: ottla reassign"
        )


def _meta(directory: Path) -> MetaProperties:
    path = directory / META
    try:
        return MetaProperties.parse(path.read_text(encoding="utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}: no broker has used this directory") from None


def zookeeper_address(option: str, place: str) -> str:
    """`HOST:PORT,.../PATH` of `zookeeper://HOST:PORT,.../PATH`."""
    connect = place.removeprefix(SCHEME)
    if not place.startswith(SCHEME) or not connect:
        expected = f"{SCHEME}HOST:PORT,.../PATH" + (" or embedded" if option == "--to" else "")
        raise UserError(f"{option} {place or '(none)'}: expected {expected}")
    return connect


def zookeeper_config(connect: str, server_config: Path | None) -> BrokerConfig:
    """How to reach an ensemble: TLS and login as the settings of a broker say."""
    if server_config is None:
        return BrokerConfig(zookeeper_connect=connect, zookeeper_session_timeout_ms=SESSION_MS)
    return load(server_config, environment=os.environ).config.changed(zookeeper_connect=connect)


async def open_zookeeper(access: BrokerConfig) -> Store:
    """An open session with an ensemble; UserError if it does not answer."""
    store = zookeeper_store(access)
    try:
        await store.start()
    except StoreUnavailable as error:
        raise UserError(f"{SCHEME}{access.zookeeper_connect}: {error.strerror}") from None
    return store


def show_counts(verb: str, nodes: Sequence[TreeNode]) -> None:
    def below(parent: str) -> int:
        return sum(paths.parent(node.path) == parent for node in nodes)

    roots = (f"{paths.ACLS}/", f"{paths.ACLS_PREFIXED}/")
    acls = [node for node in nodes if node.path.startswith(roots) and node.data]
    rows = [
        ("topics", below(paths.TOPICS)),
        ("partitions", sum(node.path.endswith("/state") for node in nodes)),
        ("settings of topics", below(paths.CONFIG_TOPICS)),
        ("settings of brokers", below(paths.CONFIG_BROKERS)),
        ("settings of groups", below(paths.CONFIG_GROUPS)),
        ("resources with ACLs", len(acls)),
        ("nodes in all", len(nodes)),
    ]
    table("", (verb, "count"), rows)

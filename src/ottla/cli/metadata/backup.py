"""`ottla metadata export`, `import`: the metadata of a cluster, to a file and back.

For an ensemble that lost its data, or is replaced. The file has a line of JSON for each node. It
holds password verifiers of users, so only its owner may read it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.metadata.move import (
    SCHEME,
    ServerConfig,
    check_empty,
    open_zookeeper,
    show_counts,
    zookeeper_address,
    zookeeper_config,
)
from ottla.cli.metadata.tree_copy import TreeNode, advanced, read_tree, write_tree
from ottla.config.broker import BrokerConfig
from ottla.model.errors import UserError
from ottla.store import paths

PRIVATE: Final = 0o600

File = Annotated[Path, typer.Argument(metavar="FILE", help="Name the file.")]


def export(
    file: File,
    *,
    from_: Annotated[
        str, typer.Option("--from", metavar="zookeeper://...", help="Read from this ensemble.")
    ],
    server_config: ServerConfig = None,
) -> int:
    """Write the metadata of a cluster to a file.

    Topics, leaders, settings, ACLs, users and ids; brokers may run meanwhile. Records stay in the
    log directories, which are backed up by replication.

    Examples:
      ottla metadata export backup.jsonl --from zookeeper://localhost:2181/ottla
    """
    nodes = asyncio.run(_read(zookeeper_config(zookeeper_address("--from", from_), server_config)))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(file, flags, PRIVATE)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; an export never overwrites a file") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        for node in nodes:
            data = base64.b64encode(node.data).decode()
            row = {"path": node.path, "data": data, "version": node.version}
            out.write(json.dumps(row) + "\n")
    show_counts("exported", nodes)
    return 0


def import_(
    file: File,
    *,
    to: Annotated[str, typer.Option(metavar="zookeeper://...", help="Write to this ensemble.")],
    server_config: ServerConfig = None,
) -> int:
    """Write exported metadata to an ensemble that is empty.

    Stop every broker first, and start them afterwards. Leader epochs and producer ids continue
    above those of the export, which the logs may know already. Topics that were created after the
    export are unknown to the cluster then; their directories stay on the disks.

    Examples:
      ottla metadata import backup.jsonl --to zookeeper://localhost:2181/ottla
    """
    nodes = advanced(_parse(file))
    asyncio.run(_write(zookeeper_config(zookeeper_address("--to", to), server_config), nodes))
    show_counts("imported", nodes)
    return 0


async def _read(access: BrokerConfig) -> list[TreeNode]:
    source = await open_zookeeper(access)
    try:
        nodes = await read_tree(source)
    finally:
        await source.close()
    if not any(node.path == paths.CLUSTER_ID for node in nodes):
        raise UserError(f"{SCHEME}{access.zookeeper_connect} has no metadata of a cluster")
    return nodes


async def _write(access: BrokerConfig, nodes: Sequence[TreeNode]) -> None:
    target = await open_zookeeper(access)
    try:
        await check_empty(target, access)
        await write_tree(target, nodes)
    finally:
        await target.close()


def _parse(file: Path) -> list[TreeNode]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [
            TreeNode(str(row["path"]), base64.b64decode(row["data"]), int(row["version"]))
            for row in rows
        ]
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file}: not a file of ottla metadata export") from None

"""The whole tree of a metadata store: read, written into an empty store, deleted.

Owns what is copied: every persistent node, except notifications, which only running brokers need.
A write is complete when the target has a cluster id, which comes last.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.delay.slices import sliced
from ottla.model.ids import NO_BROKER, LeaderEpoch, ProducerId
from ottla.store import paths
from ottla.store.nodes import ProducerIdBlockNode, StateNode
from ottla.store.port import Create, Delete, Op, Set, Store, in_batches

READ_AT_ONCE: Final = 200
EPOCH_STEP: Final = 100_000
"""More elections than a partition has between an export and the import of it. Leader epochs have 31
bits: enough for 20,000 imports."""
PRODUCER_ID_STEP: Final = 1_000_000_000
_IS_STATE: Final = re.compile(rf"{paths.TOPICS}/[^/]+/partitions/[0-9]+/state")
_NOTIFICATIONS: Final = (
    paths.CONFIG_CHANGES,
    paths.ACL_CHANGES,
    paths.ACL_CHANGES_PREFIXED,
    paths.ISR_CHANGES,
    paths.LOG_DIR_EVENTS,
    paths.TOKEN_CHANGES,
)
_OF_ZOOKEEPER: Final = "/zookeeper"
"""ZooKeeper's own nodes, at the root of every ensemble."""


class TreeNode(NamedTuple):
    path: str
    data: bytes
    version: int


async def is_empty(store: Store) -> bool:
    return not {f"/{name}" for name in await store.children("/")} - {_OF_ZOOKEEPER}


async def read_tree(store: Store) -> list[TreeNode]:
    """Parents first."""
    nodes: list[TreeNode] = []
    level = ["/"]
    while level:
        found = [path for some in sliced(level, READ_AT_ONCE) for path in await _below(store, some)]
        level = []
        for some in sliced(found, READ_AT_ONCE):
            for path, node in zip(some, await store.get_many(some), strict=True):
                if node is not None and not node.ephemeral:
                    nodes.append(TreeNode(path, node.data, node.version))
                    level.append(path)
    return nodes


async def write_tree(store: Store, nodes: Sequence[TreeNode]) -> None:
    others = [node for node in nodes if node.path != paths.CLUSTER_ID]
    for batch in in_batches([op for node in others for op in _creation(node)]):
        await store.multi(batch)
    await store.multi([Create(node.path, node.data) for node in nodes if node not in others])


def advanced(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """An older tree with leader epochs and producer ids that nobody can have used since.

    The logs know of elections, and of producers, that came after the tree was read. A second leader
    of the same epoch would let replicas differ unnoticed; a second producer with the same id would
    have its records taken for repeats.
    """
    block = ProducerIdBlockNode(NO_BROKER, ProducerId(0), ProducerId(0))
    others = []
    for node in nodes:
        if node.path == paths.PRODUCER_ID_BLOCK:
            block = ProducerIdBlockNode.decode(node.data)
            continue
        if _IS_STATE.fullmatch(node.path):
            state = StateNode.decode(node.data)
            epoch = LeaderEpoch(state.leader_epoch + EPOCH_STEP)
            node = node._replace(data=state._replace(leader_epoch=epoch).encode())
        others.append(node)
    block = block._replace(last=ProducerId(block.last + PRODUCER_ID_STEP))
    return [*others, TreeNode(paths.PRODUCER_ID_BLOCK, block.encode(), 0)]


async def delete_tree(store: Store, nodes: Sequence[TreeNode]) -> None:
    """Children first; the cluster id before everything, so that no broker starts on a part."""
    await store.delete(paths.CLUSTER_ID)
    left = await read_tree(store)
    left += [
        TreeNode(f"{parent}/{name}", b"", 0)
        for parent in _NOTIFICATIONS
        if any(node.path == parent for node in nodes)
        for name in await store.children(parent)
    ]
    ops: list[Op] = [Delete(node.path) for node in sorted(left, reverse=True)]
    for batch in in_batches(ops):
        await store.multi(batch)


async def _below(store: Store, parents: Sequence[str]) -> list[str]:
    parents = [path for path in parents if path not in _NOTIFICATIONS]
    children = await asyncio.gather(*(store.children(path) for path in parents))
    return [
        path
        for parent, names in zip(parents, children, strict=True)
        for name in names
        if (path := f"{parent.rstrip('/')}/{name}") != _OF_ZOOKEEPER
    ]


def _creation(node: TreeNode) -> list[Op]:
    ops: list[Op] = [Create(node.path, node.data)]
    if node.path == paths.BROKER_SEQUENCE:  # its version counts the broker ids generated so far
        ops += [Set(node.path, node.data)] * node.version
    return ops

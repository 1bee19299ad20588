"""Nodes whose changes are announced by notification nodes, which all brokers watch.

Owns how several brokers write such a node concurrently, and how old notifications are deleted.
Never interprets a node or a notification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.delay.slices import sliced
from ottla.store import paths
from ottla.store.nodes import ConfigChangeNode
from ottla.store.port import BadVersion, Create, Delete, Node, NodeExists, NoNode, Op, Store


async def write_with_notification(
    store: Store, path: str, write: Callable[[Node | None], Op | None], notification: Op
) -> None:
    """Perform the operation `write` returns for the node, with `notification`; None: do nothing."""
    while True:
        op = write(await store.get(path))
        if op is None:
            return
        try:
            await store.multi([op, notification])
        except (BadVersion, NodeExists, NoNode) as conflict:
            if conflict.at > 0:
                raise  # the parent of the notification does not exist: a retry cannot help
            continue  # another broker changed the node: apply the change to the new value
        return


class Rewrite(NamedTuple):
    """A change of one node, and its notification."""

    path: str
    write: Callable[[Node | None], Op | None]
    notification: Op


async def rewrite_all(store: Store, rewrites: Sequence[Rewrite]) -> None:
    """Write several nodes at once, or one by one if another broker changes them meanwhile."""
    nodes = await store.get_many([rewrite.path for rewrite in rewrites])
    ops: list[Op] = []
    for rewrite, node in zip(rewrites, nodes, strict=True):
        op = rewrite.write(node)
        if op is not None:
            ops += [op, rewrite.notification]
    if not ops:
        return
    try:
        await store.multi(ops)
    except (BadVersion, NodeExists, NoNode):
        for path, write, notification in rewrites:
            await write_with_notification(store, path, write, notification)


async def delete_notifications(
    store: Store, parent: str, names: Sequence[str], retained: int
) -> None:
    """Delete the oldest notifications; `names` are sorted by age, the last ones are retained."""
    old: list[Op] = [Delete(f"{parent}/{name}") for name in names[:-retained]]
    for some in sliced(old):
        try:
            await store.multi(some)
        except NoNode:  # another broker deletes them too
            for op in some:
                with suppress(NoNode):
                    await store.multi([op])


def config_change_notification(entity: str) -> Op:
    """Tells every broker that the settings of this entity changed."""
    return Create(
        f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}",
        ConfigChangeNode(entity).encode(),
        sequential=True,
    )

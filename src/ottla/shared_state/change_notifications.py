"""Nodes whose changes are noted beside them, so that every broker hears of each.

Owns how such a node is written by several brokers at a time, and how old notes go. Never knows what
is in a node or a note.
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
    store: Store, path: str, write: Callable[[Node | None], Op | None], note: Op
) -> None:
    """Do what `write` makes of the node, and note it; None is nothing to do."""
    while True:
        wanted = write(await store.get(path))
        if wanted is None:
            return
        try:
            await store.multi([wanted, note])
        except (BadVersion, NodeExists, NoNode) as refused:
            if refused.at > 0:
                raise  # it is the note that has no place, and never will
            continue  # somebody else changed it: change what they made of it
        return


class Rewrite(NamedTuple):
    """What shall become of one node, and the note of it."""

    path: str
    write: Callable[[Node | None], Op | None]
    note: Op


async def rewrite_all(store: Store, rewrites: Sequence[Rewrite]) -> None:
    """Several nodes in one write, or one by one if somebody else changes them meanwhile."""
    nodes = await store.get_many([one.path for one in rewrites])
    ops: list[Op] = []
    for one, node in zip(rewrites, nodes, strict=True):
        wanted = one.write(node)
        if wanted is not None:
            ops += [wanted, one.note]
    if not ops:
        return
    try:
        await store.multi(ops)
    except (BadVersion, NodeExists, NoNode):
        for one in rewrites:
            await write_with_notification(store, one.path, one.write, one.note)


async def delete_notifications(store: Store, folder: str, notes: Sequence[str], kept: int) -> None:
    """Notes that everybody has had time to read go; they come in their order."""
    old: list[Op] = [Delete(f"{folder}/{note}") for note in notes[:-kept]]
    for some in sliced(old):
        try:
            await store.multi(some)
        except NoNode:  # another broker tidies up as well
            for one in some:
                with suppress(NoNode):
                    await store.multi([one])


def config_change_notification(entity: str) -> Op:
    """Every broker hears that the settings of this entity changed."""
    return Create(
        f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}",
        ConfigChangeNode(entity).encode(),
        sequential=True,
    )

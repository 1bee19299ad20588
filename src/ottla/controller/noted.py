"""Nodes whose changes are noted beside them, so that every broker hears of each.

Owns how such a node is written by several brokers at a time, and how old notes go. Never knows what
is in a node or a note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.store.port import BadVersion, Delete, Node, NodeExists, NoNode, Op, Store


async def rewrite(
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


async def forget(store: Store, folder: str, notes: Sequence[str], kept: int) -> None:
    """Notes that everybody has had time to read go; they come in their order."""
    for note in notes[:-kept]:
        try:
            await store.multi([Delete(f"{folder}/{note}")])
        except NoNode:
            continue  # another broker tidied up first

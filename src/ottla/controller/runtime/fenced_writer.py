"""Performs the controller's writes: fenced, in batches of limited size.

Owns the fence: every batch checks the version of `/controller_epoch` in the same atomic write, so
a controller that has been replaced cannot change anything. Never decides what to write.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.store import paths
from ottla.store.port import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Op,
    Set,
    Store,
    StoreError,
    in_batches,
)


class ControllerFenced(Exception):
    """Another controller has been elected."""


class FencedWriter:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, ops: Sequence[Op], epoch_version: int) -> None:
        """Write all operations; StoreError from the first batch with a conflict."""
        fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        for batch in in_batches(ops):
            await self._write_batch(fence, batch)

    async def _write_batch(self, fence: Check, batch: list[Op]) -> None:
        while batch:
            try:
                await self._store.multi([fence, *batch])
                return
            except StoreError as conflict:
                if conflict.at == 0 and isinstance(conflict, BadVersion | NoNode):
                    raise ControllerFenced from conflict
                batch = _resolve_conflict(batch, conflict)


def _resolve_conflict(batch: list[Op], conflict: StoreError) -> list[Op]:
    """Skip deletes of missing nodes and creates of existing empty ones; raise anything else."""
    index = conflict.at - 1  # the fence is the first operation
    op = batch[index]
    before, after = batch[:index], batch[index + 1 :]
    if isinstance(op, Delete) and isinstance(conflict, NoNode):
        return [*before, *after]
    if isinstance(op, Create) and isinstance(conflict, NodeExists):
        if not op.data:
            return [*before, *after]
        if paths.parent(op.path) == paths.CONFIG_TOPICS:  # left over from a deleted topic
            return [*before, Set(op.path, op.data), *after]
    raise conflict

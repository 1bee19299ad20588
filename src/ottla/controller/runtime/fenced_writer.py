"""Performs the controller's writes: fenced, in pieces a store can swallow.

Owns the fence: every piece checks the version of `/controller_epoch` in the same atomic write, so
a controller that has been replaced cannot change anything. Never decides what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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
)

PIECE: Final = 500
"""Operations in one atomic write. A step that needs more is resumed from the store if cut short."""
PIECE_BYTES: Final = 500_000
"""And their size: ZooKeeper hangs up on a request of a megabyte."""
OP_BYTES: Final = 80
"""What an operation takes beside its path and data."""


class ControllerFenced(Exception):
    """Another controller has been elected."""


class FencedWriter:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, ops: Sequence[Op], epoch_version: int) -> None:
        """All of them, or StoreError from the first piece that met something unexpected."""
        fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        for piece in _pieces(ops):
            await self._write_piece(fence, piece)

    async def _write_piece(self, fence: Check, piece: list[Op]) -> None:
        while piece:
            try:
                await self._store.multi([fence, *piece])
                return
            except StoreError as refused:
                if refused.at == 0 and isinstance(refused, BadVersion | NoNode):
                    raise ControllerFenced from refused
                piece = _without_obstacle(piece, refused)


def _pieces(ops: Sequence[Op]) -> Iterator[list[Op]]:
    piece: list[Op] = []
    size = 0
    for op in ops:
        bytes_ = OP_BYTES + len(op.path) + (len(op.data) if isinstance(op, Create | Set) else 0)
        if piece and (len(piece) == PIECE or size + bytes_ > PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(op)
        size += bytes_
    if piece:
        yield piece


def _without_obstacle(piece: list[Op], refused: StoreError) -> list[Op]:
    """What is gone need not be deleted, what is there need not be made; all else is a conflict."""
    at = refused.at - 1  # the fence stands before them
    op = piece[at]
    before, after = piece[:at], piece[at + 1 :]
    if isinstance(op, Delete) and isinstance(refused, NoNode):
        return [*before, *after]
    if isinstance(op, Create) and isinstance(refused, NodeExists):
        if not op.data:
            return [*before, *after]
        if paths.parent(op.path) == paths.CONFIG_TOPICS:  # left over from a topic long gone
            return [*before, Set(op.path, op.data), *after]
    raise refused

"""Controller election: the ephemeral node `/controller` and the counter `/controller_epoch`.

Owns how a broker wins: it writes the node and the new epoch atomically, so that two controllers
never have the same epoch. If the reply to that write is lost, the node is there and belongs to our
session: the broker recognises it and takes office under the epoch written with it. Never watches
the node.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from ottla.model.clock import WallMs
from ottla.model.ids import BrokerId, ControllerEpoch
from ottla.store import paths
from ottla.store.nodes import ControllerEpochNode, ControllerNode
from ottla.store.port import (
    BadVersion,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    Op,
    Owner,
    Set,
    Store,
    owner_of,
)

ATTEMPTS: Final = 5
"""Each follows a refused write, after which the next read is newer."""


class ControllerTerm(NamedTuple):
    """The epoch of an active controller, and the node version that fences its writes."""

    epoch: ControllerEpoch
    version: int


async def try_to_become_controller(
    store: Store, broker_id: BrokerId, now_ms: WallMs
) -> ControllerTerm | None:
    """Become the controller if there is none; None if another broker was faster."""
    for _ in range(ATTEMPTS):
        # The epoch is read first: if the controller node read after it is ours, then no other
        # controller was elected in between, and the epoch is ours or older, never another's.
        epoch = await store.get(paths.CONTROLLER_EPOCH)
        controller = await store.get(paths.CONTROLLER)
        owner = None if controller is None else owner_of(controller, store)
        with suppress(NodeExists, NoNode, BadVersion):  # what was read is outdated
            if controller is None:
                return await _create(store, broker_id, now_ms, epoch)
            if owner is Owner.THIS_SESSION and epoch is not None:
                await store.multi([Check(paths.CONTROLLER_EPOCH, epoch.version)])
                return ControllerTerm(ControllerEpochNode.decode(epoch.data).epoch, epoch.version)
            if owner is not Owner.EARLIER_SESSION or epoch is None:
                return None
            no_other_elected = Check(paths.CONTROLLER_EPOCH, epoch.version)
            await store.multi([no_other_elected, Delete(paths.CONTROLLER)])
    return None


async def _create(
    store: Store, broker_id: BrokerId, now_ms: WallMs, epoch: Node | None
) -> ControllerTerm:
    if epoch is None:
        term = ControllerTerm(ControllerEpoch(1), 0)
        write_epoch: Op = Create(paths.CONTROLLER_EPOCH, ControllerEpochNode(term.epoch).encode())
    else:
        last = ControllerEpochNode.decode(epoch.data).epoch
        term = ControllerTerm(ControllerEpoch(last + 1), epoch.version + 1)
        data = ControllerEpochNode(term.epoch).encode()
        write_epoch = Set(paths.CONTROLLER_EPOCH, data, epoch.version)
    registration = ControllerNode(broker_id, now_ms).encode()
    await store.multi([Create(paths.CONTROLLER, registration, ephemeral=True), write_epoch])
    return term

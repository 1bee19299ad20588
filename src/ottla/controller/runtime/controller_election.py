"""Controller election: the ephemeral node `/controller` and the counter `/controller_epoch`.

Owns how a broker wins: it writes the node and the new epoch atomically, so that two controllers
never have the same epoch. Never watches the node.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.ids import BrokerId, ControllerEpoch
from ottla.store import paths
from ottla.store.nodes import ControllerEpochNode, ControllerNode
from ottla.store.port import BadVersion, Create, NodeExists, Op, Set, Store


class ControllerTerm(NamedTuple):
    """The epoch of an active controller, and the node version that fences its writes."""

    epoch: ControllerEpoch
    version: int


async def try_to_become_controller(
    store: Store, broker_id: BrokerId, now_ms: int
) -> ControllerTerm | None:
    """Become the controller if there is none; None if another broker was faster."""
    node = await store.get(paths.CONTROLLER_EPOCH)
    if node is None:
        term = ControllerTerm(ControllerEpoch(1), 0)
        write_epoch: Op = Create(paths.CONTROLLER_EPOCH, ControllerEpochNode(term.epoch).encode())
    else:
        last = ControllerEpochNode.decode(node.data).epoch
        term = ControllerTerm(ControllerEpoch(last + 1), node.version + 1)
        data = ControllerEpochNode(term.epoch).encode()
        write_epoch = Set(paths.CONTROLLER_EPOCH, data, node.version)
    registration = ControllerNode(broker_id, now_ms).encode()
    try:
        await store.multi([Create(paths.CONTROLLER, registration, ephemeral=True), write_epoch])
    except (NodeExists, BadVersion):
        return None
    return term

"""The office of controller: one node that exists while somebody holds it, and a count of terms.

Owns how it is taken: the node and the new epoch in one atomic step, so that two brokers never hold
the same epoch. Never watches it.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.ids import BrokerId, ControllerEpoch
from ottla.store import paths
from ottla.store.nodes import ControllerEpochNode, ControllerNode
from ottla.store.port import BadVersion, Create, NodeExists, Op, Set, Store


class ControllerTerm(NamedTuple):
    """One controller's time in office, and the version that fences its writes."""

    epoch: ControllerEpoch
    version: int


async def try_to_become_controller(
    store: Store, broker_id: BrokerId, now_ms: int
) -> ControllerTerm | None:
    """Take it if it is free; None when somebody else was quicker."""
    node = await store.get(paths.CONTROLLER_EPOCH)
    if node is None:
        term = ControllerTerm(ControllerEpoch(1), 0)
        count: Op = Create(paths.CONTROLLER_EPOCH, ControllerEpochNode(term.epoch).encode())
    else:
        last = ControllerEpochNode.decode(node.data).epoch
        term = ControllerTerm(ControllerEpoch(last + 1), node.version + 1)
        count = Set(paths.CONTROLLER_EPOCH, ControllerEpochNode(term.epoch).encode(), node.version)
    mine = ControllerNode(broker_id, now_ms).encode()
    try:
        await store.multi([Create(paths.CONTROLLER, mine, ephemeral=True), count])
    except (NodeExists, BadVersion):
        return None
    return term

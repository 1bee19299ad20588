"""A broker whose disk is replaced by an empty one."""

from __future__ import annotations

from tests.sim.cluster.stage import Stage


async def replace_disk(stage: Stage, broker: int) -> None:
    """An operator mends the disk and starts the broker again."""
    node = stage.node(broker)
    if not node.gave_up():
        node.kill()
    node.disk.mend()
    await stage.start(broker)

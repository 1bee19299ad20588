"""What who asks may do with a resource, as replies tell it: one bit for each operation.

Owns the number that stands for not having been asked. Never decides: the authorizer does, and
without one everybody may do everything that a resource knows.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Context
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

NOT_ASKED: Final = -(2**31)


def on_topic(ctx: Context, name: str) -> int:
    return ctx.services.authorizer.operations(ctx.peer, Kind.TOPIC, name)


def on_group(ctx: Context, group_id: str) -> int:
    return ctx.services.authorizer.operations(ctx.peer, Kind.GROUP, group_id)


def on_cluster(ctx: Context) -> int:
    """Nothing at all for who may not describe it."""
    if not ctx.allows(Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME):
        return 0
    return ctx.services.authorizer.operations(ctx.peer, Kind.CLUSTER, CLUSTER_NAME)

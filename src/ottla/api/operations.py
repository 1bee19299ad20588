"""Authorized operations of the peer on a resource, as replies have them: one bit per operation.

Owns the number for "not requested". Never decides: the authorizer does; without one, every
operation of a resource is allowed.
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
    """0 if the peer may not describe the cluster."""
    if not ctx.allows(Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME):
        return 0
    return ctx.services.authorizer.operations(ctx.peer, Kind.CLUSTER, CLUSTER_NAME)

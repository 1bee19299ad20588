"""Ends a prepared transaction without being its producer.

Owns: one request, with retries. For programs that store the prepared transaction, in a database or
a checkpoint, and commit it from any process.

    end_transaction(prepared, commit=True, bootstrap_servers="localhost:9092")
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Final

from ottla.client.cluster import Cluster, CoordinatorKind
from ottla.client.errors import refusal
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.client.retry import MOVED, Deadline, retrying
from ottla.config.client import AdminConfig
from ottla.model.clock import SystemClock

END_TXN: Final = 26


def end_transaction(
    prepared: PreparedTransaction,
    *,
    commit: bool,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> None:
    """Commit or abort a transaction by its transactional id, producer id and epoch.

    Ending it again the same way is no error. `options` are those of an admin client.
    """
    settings = AdminConfig.from_options(options, config)
    asyncio.run(_end(settings, PreparedTransaction(*prepared), commit))


async def _end(settings: AdminConfig, prepared: PreparedTransaction, commit: bool) -> None:
    async with Cluster(settings, SystemClock(), Random()) as cluster:
        await end(
            cluster, prepared, commit, Deadline(cluster.clock, settings.default_api_timeout_ms)
        )


async def end(
    cluster: Cluster, prepared: PreparedTransaction, commit: bool, deadline: Deadline
) -> None:
    """As `end_transaction`, over a cluster that is open."""
    name, producer_id, epoch = prepared
    fields = {
        "transactional_id": name,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "committed": commit,
    }

    # Error codes here are the transaction coordinator's.
    async def attempt() -> None:
        node = await cluster.coordinator(
            CoordinatorKind.TXN, name, timeout_ms=max(deadline.left_ms, 1)
        )
        try:
            reply = await cluster.ask(node, END_TXN, fields)
        except OSError:
            cluster.forget_coordinator(CoordinatorKind.TXN, name)
            raise
        if reply.error_code in MOVED:
            cluster.forget_coordinator(CoordinatorKind.TXN, name)
        if reply.error_code:
            raise refusal(
                reply.error_code, f"cannot end transaction of {name}: {reply.error_code.name}"
            )

    await retrying(cluster, attempt, deadline)

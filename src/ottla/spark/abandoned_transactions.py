"""Ending what a query left behind that will not come back.

Owns: finding a query's sinks by their open transactions and ending each. For the command
`ottla transactions abort --query ID`, for programs, and for batch writes, each of which looks what
failed ones before it left; needs no Spark.
Never: aborts what was decided: that is committed, as the query's next run would have done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import re2

from ottla.client.admin.transactions import describe_transactions, list_transactions
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.config.client import ClientConfig
from ottla.spark import exactly_once
from ottla.spark.commit_decisions import JOB, Sink, job_of
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection


class Ended(NamedTuple):
    """What became of the transactions that were open, by name."""

    committed: tuple[str, ...]
    aborted: tuple[str, ...]


def end(config: ClientConfig, query: str) -> Ended:
    """As `end_query`, for a program without an event loop."""
    with Connection(config) as connection:
        client = {"bootstrap.servers": ",".join(config.bootstrap_servers)}
        return connection.run(end_query(connection, client, query))


def left_open(config: ClientConfig, query: str) -> list[str]:
    """The transactions that `ended` would end."""
    with Connection(config) as connection:
        return [each.transactional_id for each in connection.run(open_of(connection, query))]


async def end_query(connection: Connection, client: Mapping[str, str], query: str) -> Ended:
    """Commit what the query has decided, abort what it has not.

    `query` is the id Spark gave it (`query.id`, the `metadata` of its checkpoint), or the name of a
    batch job (`batch-…`). A run of it that is still alive ends with its next batch.
    """
    transactions = await open_of(connection, query)
    decided: set[PreparedTransaction] = set()
    for sink in sorted(
        {
            sink
            for transaction in transactions
            if (sink := sink_of(query, transaction[0])) is not None
        }
    ):
        ledger = StoredCommitLog(sink, connection, client)
        entry = await exactly_once.end(ledger)
        if entry is not None:
            decided.update(entry.transactions)
        else:  # its ledger is gone: nobody can know of a decision
            await ledger.abort([id for id, _, _ in transactions if sink.run_epoch(id) is not None])
    return Ended(
        tuple(
            transaction.transactional_id for transaction in transactions if transaction in decided
        ),
        tuple(
            transaction.transactional_id
            for transaction in transactions
            if transaction not in decided
        ),
    )


async def end_what_jobs_left(connection: Connection, client: Mapping[str, str]) -> None:
    """End what tasks of batch writes opened after their job had failed, and did not live to abort.

    A job that has failed says so in its ledger; of no other can one know whether it is at work.
    """
    found = await list_transactions(
        connection.session, states=["Ongoing"], pattern=f"{JOB}[0-9]+-.*"
    )
    for job in sorted({job for each in found if (job := job_of(each.id)) is not None}):
        ledger = StoredCommitLog(Sink(job), connection, client)
        entry = await ledger.read()
        if entry is not None and entry.is_ended:
            await exactly_once.end(ledger)


async def open_of(connection: Connection, query: str) -> list[PreparedTransaction]:
    """The open transactions of a query's sinks."""
    session = connection.session
    pattern = f"{re2.escape(query)}-.*"
    listed = await list_transactions(session, states=["Ongoing"], pattern=pattern)
    ids = [each.id for each in listed if sink_of(query, each.id) is not None]
    told = await describe_transactions(session, ids)
    return [
        PreparedTransaction(id, each.producer_id, each.producer_epoch)
        for id, each in told.succeeded.items()
    ]


def sink_of(query: str, id: str) -> Sink | None:
    """The sink that a transaction belongs to; None if it is none of this query's."""
    name, _, _ = id.removeprefix(f"{query}-").partition("-")
    sink = Sink(query, name)
    return sink if sink.run_epoch(id) is not None else None

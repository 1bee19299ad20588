"""`ottla transactions abort`: end transactions that nobody else will.

Three kinds: those of a transactional id, whose producer is fenced and its coordinator told to
abort; those that an abandoned Spark query left prepared, which have no timeout (what the query had
decided is committed); and one that hangs in a partition because its coordinator forgot it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from ottla.cli.argument_parsing import INT64_MAX, topic_partitions
from ottla.cli.completion import transactional_ids
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.profile.cluster import client_config
from ottla.cli.transactions.hanging import open_transactions
from ottla.client.admin.sync import Admin
from ottla.config.client import ClientConfig
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition
from ottla.spark.abandoned_transactions import end, left_open

ABORTED: Final = ("transactional id", "state before", "producer id", "epoch")


Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TRANSACTIONAL_ID",
        help="Name the transactional ids.",
        autocompletion=transactional_ids,
    ),
]


PartitionOption = Annotated[
    str | None,
    typer.Option(
        metavar="TOPIC:PARTITION", help="Name the partition with the hanging transaction."
    ),
]


def abort(
    ids: Ids = None,
    *,
    query: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Abort all that this Spark query left: ID-SINK-..."),
    ] = None,
    partition: PartitionOption = None,
    start_offset: Annotated[
        int | None,
        typer.Option(min=0, max=INT64_MAX, help="Give its first offset, with --partition."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be aborted; change nothing.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Abort transactions and fence their producers.

    Examples:
      ottla transactions abort payments
      ottla transactions abort --query 8a2c5f1e-daily-totals --dry-run
    """
    if sum(map(bool, (ids, query, partition))) != 1:
        raise UserError(
            "transactions abort: give transactional ids, --query, or --partition with "
            "--start-offset"
        )
    if partition is not None:
        hung = _hanging_partition(partition, start_offset)
        with admin_connection(bootstrap) as admin:
            return _abort_hanging(admin, *hung, dry_run=dry_run)
    if query is not None:
        with admin_connection(bootstrap):
            return _end_query(bootstrap, query, dry_run=dry_run, as_json=as_json)
    with admin_connection(bootstrap) as admin:
        described = admin.describe_transactions(ids or [])
        if dry_run:
            _would_abort(list(described.succeeded), as_json=as_json)
            return _report_unknown(described.failed)
        # Fencing an id that no coordinator knows would create it.
        outcomes = admin.fence_producers(described.succeeded)
    rows = [
        (id, described.succeeded[id].state, producer.producer_id, producer.producer_epoch)
        for id, producer in outcomes.succeeded.items()
    ]
    if rows or as_json:
        show(Table("aborted", ABORTED, rows), as_json=as_json)
    return _report_unknown(described.failed) | failures(outcomes.failed)


def _report_unknown(failed: Mapping[str, Exception]) -> int:
    """Say which ids no coordinator knows; the exit code."""
    return failures(
        {
            id: KafkaError(error.code, "no such transactional id; see: ottla transactions list")
            if isinstance(error, KafkaError) and error.code is ErrorCode.transactional_id_not_found
            else error
            for id, error in failed.items()
        }
    )


def _end_query(bootstrap: str, query: str, *, dry_run: bool, as_json: bool) -> int:
    """What the query had decided is committed all the same: its next run would have done that."""
    config = ClientConfig.from_options({}, client_config(bootstrap, ClientConfig))
    ids = left_open(config, query)
    if dry_run or not ids:
        return _would_abort(ids, as_json=as_json)
    done = end(config, query)
    rows = [(id, "committed") for id in done.committed] + [(id, "aborted") for id in done.aborted]
    show(Table("ended", ("transactional id", "outcome"), rows), as_json=as_json)
    return 0


def _would_abort(ids: list[str], *, as_json: bool) -> int:
    show(Table("would abort", ("transactional id",), [(id,) for id in ids]), as_json=as_json)
    return 0


def _hanging_partition(partition: str, start_offset: int | None) -> tuple[TopicPartition, int]:
    topic, indexes = topic_partitions("--partition", partition)
    if indexes is None or len(indexes) != 1:
        raise UserError(f"--partition {partition!r}: expected one, such as orders:0")
    if start_offset is None:
        raise UserError("--start-offset is required; ottla transactions find-hanging shows it")
    return TopicPartition(topic, indexes[0]), start_offset


def _abort_hanging(
    admin: Admin, partition: TopicPartition, start_offset: int, *, dry_run: bool
) -> int:
    matches = [
        transaction
        for transaction in open_transactions(admin, [partition])
        if transaction.producer.transaction_start == start_offset
    ]
    if not matches:
        raise UserError(f"--start-offset {start_offset}: no transaction is open there")
    if not dry_run:
        admin.abort_transaction(partition, matches[0].producer)
    done = "would abort" if dry_run else "aborted"
    print(f"{done} the transaction of producer {matches[0].producer.producer_id} in {partition}")
    return 0

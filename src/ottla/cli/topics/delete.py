"""`ottla topics delete`: topics with all their records."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from ottla.cli.completion import topic_names
from ottla.cli.confirmation import DryRun, Yes, confirm, require_terminal
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.client.admin import OffsetSpec, Topic
from ottla.client.admin.sync import Admin
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition


def delete(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC", help="Name the topics to delete.", autocompletion=topic_names
        ),
    ],
    *,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Skip topics that do not exist.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete topics with all their records, irrevocably.

    On a terminal it shows what would go, and asks; elsewhere it needs --yes.

    Examples:
      ottla topics delete old-orders --dry-run
      ottla topics delete old-orders --yes
      ottla topics delete old-clicks older-clicks --if-exists --yes
    """
    if not (yes or dry_run):
        require_terminal("topics delete")
    if dry_run or not yes:
        with admin_connection(bootstrap) as admin:
            described = admin.describe_topics(names)
            table = _to_be_deleted(admin, list(described.succeeded.values()))
        show(table, as_json=False, file=sys.stdout if dry_run else sys.stderr)
        if dry_run or not described.succeeded:
            return _failures(described.failed, if_exists)
        if not confirm("delete them?"):
            print("ottla: nothing was deleted", file=sys.stderr)
            return 1
    with admin_connection(bootstrap) as admin:
        outcomes = admin.delete_topics(names)
    for name in outcomes.succeeded:
        print(f"deleted {name}")
    return _failures(outcomes.failed, if_exists)


def _to_be_deleted(admin: Admin, topics: Sequence[Topic]) -> Table:
    """How much is in each topic; bytes are those of all replicas."""
    partitions = [
        TopicPartition(topic.name, partition.index)
        for topic in topics
        for partition in topic.partitions
    ]
    starts = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST)).succeeded
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)).succeeded
    sizes = replica_bytes(admin, partitions)
    records: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for partition in partitions:
        if partition in starts and partition in ends:
            records[partition.topic] += (ends[partition].offset or 0) - (
                starts[partition].offset or 0
            )
        size[partition.topic] += sizes[partition]
    rows = [
        (topic.name, len(topic.partitions), records[topic.name], size[topic.name])
        for topic in topics
    ]
    return Table("to be deleted", ("topic", "partitions", "records", "bytes"), rows)


def replica_bytes(admin: Admin, partitions: Sequence[TopicPartition]) -> Counter[TopicPartition]:
    """What the replicas of partitions take on all disks together."""
    sizes: Counter[TopicPartition] = Counter()
    for directories in admin.describe_log_dirs(partitions=partitions).succeeded.values():
        for directory in directories:
            for partition, replica in directory.replicas.items():
                sizes[partition] += replica.size_bytes
    return sizes


def _failures(failed: Mapping[str, Exception], if_exists: bool) -> int:
    return failures(
        {name: error for name, error in failed.items() if not (if_exists and _missing(error))}
    )


def _missing(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.unknown_topic_or_partition

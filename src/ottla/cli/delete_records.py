"""`ottla delete-records`: forget the oldest records of partitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.argument_parsing import INT32_MAX, topic_partitions, whole_number, whole_value
from ottla.cli.completion import topic_names
from ottla.cli.confirmation import DryRun, Yes, confirm, require_terminal
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.topics.delete import replica_bytes
from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

END: Final = "end"
EVERYTHING: Final = -1
PREVIEW: Final = ("topic", "partition", "records to go", "records to stay", "bytes now")


TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC[:PARTITION,...]", help="Name the topic.", autocompletion=topic_names
    ),
]


def delete_records(
    topic: TopicArgument = None,
    *,
    before: Annotated[
        str | None, typer.Option(metavar="OFFSET|end", help="Delete records below this offset.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="Read offsets in the format of kafka-delete-records.sh."),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete the records of partitions below an offset, irrevocably.

    On a terminal it shows what would go, and asks; elsewhere it needs --yes.

    Examples:
      ottla delete-records orders:0 --before 2 --dry-run
      ottla delete-records clicks --before end --yes
      ottla delete-records --file offsets.json --yes
    """
    offset = None if before is None else _offset(before)
    if (topic is None) == (file is None):
        raise UserError("delete-records: give TOPIC with --before, or --file")
    if topic is not None and offset is None:
        raise UserError("--before is required: an offset, or end for all records")
    offsets = {} if file is None else _from_file(file)
    if not (yes or dry_run):
        require_terminal("delete-records")
    with admin_connection(bootstrap) as admin:
        if topic is not None and offset is not None:
            partitions = expand_partitions(admin, [topic_partitions("TOPIC", topic)])
            offsets = dict.fromkeys(partitions, offset)
        if dry_run or not yes:
            table = _to_be_deleted(admin, offsets)
            show(table, as_json=as_json and dry_run, file=sys.stdout if dry_run else sys.stderr)
            if dry_run:
                return 0
            if not confirm("delete them?"):
                print("ottla: nothing was deleted", file=sys.stderr)
                return 1
        outcomes = admin.delete_records(offsets)
    rows = [(one.topic, one.partition, start) for one, start in outcomes.succeeded.items()]
    show(Table("begins now at", ("topic", "partition", "offset"), rows), as_json=as_json)
    return failures(outcomes.failed)


def _to_be_deleted(admin: Admin, offsets: Mapping[TopicPartition, int]) -> Table:
    """How many records of each partition would go, and how many bytes it has in all."""
    starts = admin.list_offsets(dict.fromkeys(offsets, OffsetSpec.EARLIEST)).all()
    ends = admin.list_offsets(dict.fromkeys(offsets, OffsetSpec.LATEST)).all()
    sizes = replica_bytes(admin, list(offsets))
    rows = []
    for partition, before in offsets.items():
        start, end = starts[partition].offset or 0, ends[partition].offset or 0
        until = end if before == EVERYTHING else min(before, end)
        gone = max(until - start, 0)
        rows.append(
            (partition.topic, partition.partition, gone, end - start - gone, sizes[partition])
        )
    return Table("to be deleted", PREVIEW, rows)


def _offset(text: str) -> int:
    if text == END:
        return EVERYTHING
    return whole_number("--before", text, "an offset from 0 on, or end")


def _from_file(path: Path) -> dict[TopicPartition, int]:
    """`{"partitions": [{"topic": "orders", "partition": 0, "offset": 10}], "version": 1}`."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["partitions"]
        return {
            TopicPartition(str(row["topic"]), whole_value(row["partition"], most=INT32_MAX)): (
                whole_value(row["offset"])
            )
            for row in rows
        }
    except OSError as error:
        raise UserError(f"--file {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise UserError(
            f"--file {path}: expected JSON such as "
            '{"partitions": [{"topic": "orders", "partition": 0, "offset": 10}]}'
        ) from None

"""`ottla consume`: records to lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import typer

from ottla.cli.argument_parsing import INT64_MAX, offset_spec, topic_partitions, whole_number
from ottla.cli.completion import group_names, topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import patience
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, Bootstrap, Properties, pairs
from ottla.cli.profile.cluster import client_config
from ottla.cli.records.formatting import Format, parts, shower
from ottla.cli.records.printing import PrintOptions, print_all, record_filter
from ottla.cli.records.ranges import Batch, ReadRange, read_group, read_span, span
from ottla.cli.records.termination import interrupted_by_sigterm, open_consumer
from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.sync import Consumer
from ottla.config.client import ConsumerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

Topics = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC[:PARTITION,...]", help="Name the topics to read.", autocompletion=topic_names
    ),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="WHERE", help="Start at earliest, latest, @OFFSET, or a time."),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="WHERE", help="Stop before this @OFFSET or time; default: the end now."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Wait for more records, until interrupted.")
]
Most = Annotated[
    int | None,
    typer.Option(
        "--max-messages", "-n", min=1, max=INT64_MAX, help="Stop after this many records."
    ),
]
GroupName = Annotated[
    str | None,
    typer.Option(
        "--group", "-g", help="Read and commit as this group.", autocompletion=group_names
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, as --format json does.")]
Look = Annotated[Format, typer.Option("--format", help="Choose the output format.")]
Shown = Annotated[
    str | None,
    typer.Option(
        "--show", metavar="PART,...", help="Print also timestamp, partition, offset, headers, key."
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="FIELD=REGEX",
        help="Filter by key=, value= or header.NAME=; repeatable.",
    ),
]
Committed = Annotated[
    bool, typer.Option("--read-committed", help="Skip records of open and aborted transactions.")
]


def consume(  # noqa: PLR0913 - a command's options are its parameters
    topics: Topics,
    *,
    start: From = None,
    to: To = None,
    follow: Follow = False,
    max_messages: Most = None,
    group: GroupName = None,
    format: Look = Format.TEXT,
    as_json: Json = False,
    show: Shown = None,
    filters: Filters = None,
    read_committed: Committed = False,
    properties: Properties = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Print records up to the current end, or with --follow without end.

    A time is ISO 8601, or how long ago: 2h. With --group the group's committed offsets say where
    to begin (--from, earliest or latest, where there are none), and what was read is committed.
    --format json is what `ottla produce --json` reads.

    Examples:
      ottla consume orders
      ottla consume orders:0 --from @1 --to @3 --show key,offset
      ottla consume orders --from 2h --json --max-messages 10
      ottla consume orders --group billing --filter value=^t --filter header.source=shop
    """
    look = Format.JSON if as_json else format
    shows = shower(look, parts("--show", show))
    showing = PrintOptions(shows, record_filter(filters or ()), max_messages)
    chosen = [topic_partitions("TOPIC", text) for text in topics]
    config = {
        "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        "auto.offset.reset": start if group and start else "earliest",
        "enable.auto.commit": "false",
        **client_config(bootstrap, ConsumerConfig),
        **pairs("--set", properties),
    }
    limits = Limits(start, to, follow, read_committed)
    if group is not None:
        limits.require_none(chosen)
    with admin_connection(bootstrap) as admin:
        partitions = expand_partitions(admin, chosen)  # a topic that is not there is said at once
        where = ReadRange({}, None) if group is not None else limits.of(admin, partitions)
    if group is not None:
        config["group.id"] = group
        return _as_group([topic for topic, _ in chosen], follow, showing, config)
    with interrupted_by_sigterm(), open_consumer(config) as consumer:
        return _show(read_span(consumer, where), showing, total=where.total)


class Limits(NamedTuple):
    """Where reading begins and ends, as it was asked for."""

    start: str | None
    to: str | None
    follow: bool
    read_committed: bool

    def require_none(self, chosen: list[tuple[str, tuple[int, ...] | None]]) -> None:
        """A group has limits of its own; --from is for partitions it has committed nothing of."""
        if self.start not in (None, "earliest", "latest"):
            raise UserError(
                f"--from {self.start}: a group starts at its committed offsets, else at earliest "
                "or latest; move them with: ottla groups reset-offsets"
            )
        if self.to is not None or any(some for _, some in chosen):
            raise UserError(
                "--group: a group reads whole topics, up to their end; omit --to and partitions"
            )

    def of(self, admin: Admin, partitions: list[TopicPartition]) -> ReadRange:
        """The offsets that are meant."""
        if self.follow and self.to is not None:
            raise UserError("--follow and --to: give one of them")
        offsets = span(
            admin,
            partitions,
            _spec("--from", self.start) or OffsetSpec.EARLIEST,
            end=None if self.follow else _spec("--to", self.to) or OffsetSpec.LATEST,
            read_committed=self.read_committed,
        )
        first, last = _offset("--from", self.start), _offset("--to", self.to)
        starts = offsets.starts if first is None else dict.fromkeys(partitions, first)
        if last is None or offsets.ends is None:
            return ReadRange(starts, offsets.ends)
        return ReadRange(starts, {one: min(last, end) for one, end in offsets.ends.items()})


def _spec(option: str, text: str | None) -> OffsetSpec | int | None:
    if text is None or text.startswith("@"):
        return None
    return offset_spec(option, text, SystemClock().wall_ms())


def _offset(option: str, text: str | None) -> int | None:
    if text is None or not text.startswith("@"):
        return None
    if not text[1:].isascii() or not text[1:].isdigit():
        raise UserError(f"{option} {text!r}: expected an offset such as @42")
    return whole_number(option, text[1:], "an offset")


def _as_group(
    topics: list[str], follow: bool, showing: PrintOptions, config: Mapping[str, object]
) -> int:
    with interrupted_by_sigterm(), open_consumer(config) as consumer:
        batches = read_group(consumer, topics, follow=follow)
        return _show(batches, showing, commits=consumer)


def _show(
    batches: Iterable[Batch],
    showing: PrintOptions,
    *,
    commits: Consumer[bytes, bytes] | None = None,
    total: int | None = None,
) -> int:
    with patience("reading", total, quiet=sys.stdout.isatty()) as tell:
        print_all(batches, showing, SystemClock(), commits=commits, tell=tell)
    return 0

"""`ottla perf consume`: records a second."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import topic_partitions
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, Properties, pairs
from ottla.cli.perf.figures import rate
from ottla.cli.perf.produce import Records
from ottla.cli.profile.cluster import client_config
from ottla.cli.records.ranges import read_span, span
from ottla.client.admin import OffsetSpec
from ottla.client.consumer.sync import Consumer
from ottla.config.client import ConsumerConfig
from ottla.model.clock import SystemClock


def consume(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC[:PARTITION,...]", help="Name the topic.", autocompletion=topic_names
        ),
    ],
    *,
    records: Records = 100_000,
    properties: Properties = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Measure how fast records are read; commits nothing.

    Examples:
      ottla perf consume orders --records 5
      ottla perf consume orders --records 5 --json
    """
    config = {
        "enable.auto.commit": "false",
        "max.poll.records": "10000",
        **client_config(bootstrap, ConsumerConfig),
        **pairs("--set", properties),
    }
    chosen = [topic_partitions("TOPIC", topic)]
    clock, count, size = SystemClock(), 0, 0
    with admin_connection(bootstrap) as admin:
        partitions = expand_partitions(admin, chosen)
        where = span(admin, partitions, OffsetSpec.EARLIEST, end=OffsetSpec.LATEST)
    with (
        Consumer[bytes, bytes](config=config) as consumer,
        patience("reading", records) as tell,
    ):
        start_ns = clock.mono_ns()
        for batch in read_span(consumer, where):
            count += len(batch)
            size += sum(len(one.value or b"") + len(one.key or b"") for one in batch)
            tell(count)
            if count >= records:
                break
        figures = rate(count, size, clock.mono_ns() - start_ns)
    show(Table("read", tuple(figures), [tuple(figures.values())]), as_json=as_json)
    return 0

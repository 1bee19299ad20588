"""`ottla perf latency`: how long a record takes from `send` to `poll`."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ottla.cli.argument_parsing import INT64_MAX
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, Properties, TopicArgument, pairs
from ottla.cli.perf.figures import summary
from ottla.cli.perf.produce import Size
from ottla.cli.profile.cluster import client_config
from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.config.client import ConsumerConfig, ProducerConfig
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition

WAIT_S: Final = 30.0


def latency(
    topic: TopicArgument,
    *,
    records: Annotated[
        int,
        typer.Option("--records", "-n", min=1, max=INT64_MAX, help="Send this many records."),
    ] = 1_000,
    size: Size = 100,
    properties: Properties = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Measure end-to-end latency; the records stay in the topic.

    One record at a time goes to partition 0, with the next sent once it has come back. --set
    gives the producer settings, such as acks=1.

    Examples:
      ottla perf latency speed --records 20
      ottla perf latency speed --records 20 --set acks=1 --json
    """
    sending = {"linger.ms": "0", **client_config(bootstrap, ProducerConfig)}
    sending |= pairs("--set", properties)
    reading = {"enable.auto.commit": "false", **client_config(bootstrap, ConsumerConfig)}
    partition = TopicPartition(topic, 0)
    clock, took, value = SystemClock(), list[int](), b"x" * size
    with (
        admin_connection(bootstrap),
        Producer(config=sending) as producer,
        Consumer[bytes, bytes](config=reading) as consumer,
        patience("sending one at a time", records) as tell,
    ):
        producer.partitions_for(topic)
        consumer.assign([partition])
        consumer.seek_to_end(partition)
        consumer.position(partition)  # from here on nothing is missed
        for number in range(1, records + 1):
            began_ns = clock.mono_ns()
            producer.send(topic, value, partition=0)
            if not consumer.poll(WAIT_S):
                raise TimeoutError(f"no record read back from {partition} within {WAIT_S:g} s")
            took.append(clock.mono_ns() - began_ns)
            tell(number)
    figures = {"records": len(took), **{f"{name} ms": ms for name, ms in summary(took).items()}}
    show(Table("end to end", tuple(figures), [tuple(figures.values())]), as_json=as_json)
    return 0

"""`ottla perf produce`: records a second, and how long each takes to be acknowledged."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT64_MAX
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, Properties, TopicArgument, pairs
from ottla.cli.perf.figures import rate, summary
from ottla.cli.profile.cluster import client_config
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.sync import Producer
from ottla.config.client import ProducerConfig
from ottla.model.clock import SystemClock

TELL_EVERY = 50_000
SIZE_MAX = 100_000_000

Records = Annotated[
    int, typer.Option("--records", "-n", min=1, max=INT64_MAX, help="Send this many records.")
]
Size = Annotated[
    int,
    typer.Option("--size", "-s", min=0, max=SIZE_MAX, help="Set the size of each value in bytes."),
]


def produce(
    topic: TopicArgument,
    *,
    records: Records = 100_000,
    size: Size = 100,
    properties: Properties = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Measure how fast records are written; they stay in the topic.

    Examples:
      ottla perf produce speed --records 1000
      ottla perf produce speed --records 1000 --size 1000 --set linger.ms=20 --json
    """
    config = {**client_config(bootstrap, ProducerConfig), **pairs("--set", properties)}
    clock, value = SystemClock(), b"x" * size
    took: list[int] = []

    def on_acknowledged(began_ns: int, delivery: Delivery) -> None:
        if delivery.exception() is None:
            took.append(clock.mono_ns() - began_ns)

    with (
        admin_connection(bootstrap),
        Producer(config=config) as producer,
        patience("sending", records) as tell,
    ):
        producer.partitions_for(topic)
        start_ns = clock.mono_ns()
        for number, _ in enumerate(repeat(None, records), 1):
            acknowledgement = partial(on_acknowledged, clock.mono_ns())
            delivery = producer.send(topic, value)
            delivery.add_done_callback(acknowledgement)
            if number % TELL_EVERY == 0:
                tell(number)
        producer.flush()
        whole_ns = clock.mono_ns() - start_ns
        delivery.result()  # if nothing can be sent, this says why
    figures = rate(len(took), len(took) * size, whole_ns)
    figures |= {f"{name} ms": value for name, value in summary(took).items()}
    show(Table("sent", tuple(figures), [tuple(figures.values())]), as_json=as_json)
    return 0 if len(took) == records else 1

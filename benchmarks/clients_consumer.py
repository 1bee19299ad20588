"""Promise: iterating records is on a par with confluent-kafka, `poll_arrow` ten times as fast.

One broker, one topic of 100-byte records, and one process for each way of reading it, one after the
other; the clock of each starts when its first records are there. Every reader looks at nothing but
the number of records. All fetch the amounts that are their defaults: 1 MB of a partition, 8 MB for
`poll_arrow`; "large" is 8 MB where that is not the default, "small" 1 MB. A slow reader reads a
part of the topic, all of them for more than a second: in a short run memory that is used for the
first time counts for a quarter. Beside the rate, the CPU time a record took in the reading process,
which a busy machine disturbs less, and how much of a core the broker was using meanwhile.

    python -m benchmarks.clients_consumer [records] [partitions] [names of readers]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import rdkafka
from benchmarks.contenders import cpu_s
from tools import nodes

SIZE: Final = 100
BEST_OF: Final = 3
SMALL_BYTES: Final = 1 << 20  # of one partition in one fetch
LARGE_BYTES: Final = 8 << 20
TOPIC: Final = "hundred-bytes"
_WAIT_S: Final = 60.0

Load = Mapping[str, Any]


class Took(NamedTuple):
    """Seconds on the clock, and of CPU in this process, for so many records."""

    seconds: float
    cpu_s: float
    records: int


class Watch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self, records: int) -> Took:
        return Took(time.perf_counter() - self._began, time.process_time() - self._cpu, records)


def confluent(load: Load) -> Took:
    """`consumer.consume(10_000)`, which fetches ahead as far as it is let."""
    watch = Watch()
    figures = rdkafka.consume(load)
    return watch.stop(int(figures["records"]))._replace(seconds=float(figures["seconds"]))


def kafka_python(load: Load) -> Took:
    from kafka import KafkaConsumer
    from kafka.structs import TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", group_id=None
    )
    consumer.assign([TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    return _through(iter(consumer), load)


def iterate(load: Load) -> Took:
    """`for record in consumer`."""
    with _ottla(load) as consumer:
        return _through(iter(consumer), load)


def _through(records: Iterator[object], load: Load) -> Took:
    next(records)
    watch = Watch()
    for seen, _ in enumerate(records, 2):
        if seen == load["records"]:
            break
    return watch.stop(load["records"] - 1)


def poll(load: Load) -> Took:
    """`consumer.poll()`, whose lists nobody goes through."""
    with _ottla(load, max_poll_records=10_000) as consumer:
        seen = len(consumer.poll(_WAIT_S, max_records=1))
        watch = Watch()
        while seen < load["records"]:
            seen += len(consumer.poll(_WAIT_S))
        return watch.stop(seen - 1)


def poll_arrow(load: Load) -> Took:
    """`consumer.poll_arrow()`."""
    with _ottla(load) as consumer:
        first = seen = consumer.poll_arrow(_WAIT_S).num_rows  # and the kernels are loaded
        watch = Watch()
        while seen < load["records"]:
            seen += consumer.poll_arrow(_WAIT_S).num_rows
        return watch.stop(seen - first)


def _ottla(load: Load, **options: Any) -> Any:
    import ottla

    if load["fetch bytes"]:
        options["max_partition_fetch_bytes"] = load["fetch bytes"]
    consumer = ottla.Consumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", **options
    )
    consumer.assign([ottla.TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    return consumer


class Way(NamedTuple):
    """One way of reading, and what share of the topic: slow ones get less of it."""

    read: Callable[[Load], Took]
    share: float
    fetch_bytes: int | None = None


READERS: Final[Mapping[str, Way]] = {
    "confluent-kafka consume()": Way(confluent, 0.2),
    "confluent-kafka consume(), large": Way(confluent, 0.2, LARGE_BYTES),
    "kafka-python iteration": Way(kafka_python, 0.01),
    "ottla iteration": Way(iterate, 0.2),
    "ottla poll()": Way(poll, 0.2),
    "ottla poll_arrow()": Way(poll_arrow, 1.0),
    "ottla poll_arrow(), small": Way(poll_arrow, 1.0, SMALL_BYTES),
}


class Rate(NamedTuple):
    """How quick a reader was, the CPU a record took it, and the share of a core of the broker."""

    records_per_s: float
    cpu_us: float
    broker: float


def measure(name: str, load: Load, broker_pid: int) -> Rate:
    """One reader, in a process of its own."""
    way = READERS[name]
    records = int(load["records"] * way.share)
    load = {**load, "records": records, "fetch bytes": way.fetch_bytes}
    command = [sys.executable, "-m", "benchmarks.clients_consumer", "--read", name]
    before_s = cpu_s(broker_pid)
    done = subprocess.run(
        [*command, json.dumps(load)], check=True, capture_output=True, text=True, timeout=600
    )
    took = Took(*json.loads(done.stdout))
    broker = (cpu_s(broker_pid) - before_s) / took.seconds
    return Rate(took.records / took.seconds, took.cpu_s / took.records * 1e6, broker)


def main(records: int, partitions: int, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, nodes.ottla(Path(folder)) as node:
        load = {
            "bootstrap": node.bootstrap,
            "topic": TOPIC,
            "partitions": partitions,
            "size": SIZE,
            "acks": 1,
            "bytes": records * SIZE,
        }
        _create(node.bootstrap, partitions)
        load["records"] = rdkafka.produce(load)["records"]
        first: Rate | None = None
        for name in names or READERS:
            runs = 1 if name.startswith("kafka-python") else BEST_OF
            rate = max(measure(name, load, node.pid) for _ in range(runs))
            first = first or rate
            print(
                f"{name:34} {rate.records_per_s:>11,.0f} records/s "
                f"{rate.records_per_s / first.records_per_s:6.2f}  {rate.cpu_us:5.2f} us CPU "
                f"{first.cpu_us / rate.cpu_us:6.2f}  broker {rate.broker:4.0%} of a core",
                flush=True,
            )


def _create(bootstrap: str, partitions: int) -> None:
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
        AdminClient,
        NewTopic,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(_WAIT_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(READERS[sys.argv[2]].read(json.loads(sys.argv[3]))))
    else:
        given = [*sys.argv[1:], "30000000", "4"][: max(2, len(sys.argv) - 1)]
        main(int(given[0]), int(given[1]), given[2:])

"""Promise: `send()` is five times kafka-python's and on a par with confluent-kafka's `produce()`,
`send_arrow()` eight times that to one partition and three times with keys over twelve.

One broker, 100-byte records, and one process for each way of writing them, one after the other.
The clock runs from the first record to the last acknowledgement. All wait for acks=all, number
their records and make batches of the same size; "as it comes" is without that size. Beside the
rate, the CPU time a record took in the writing process, which a busy machine disturbs less, and how
much of a core the broker was using meanwhile.

    python -m benchmarks.clients_producer [records] [names of ways]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.contenders import cpu_s
from tools import nodes

VALUE: Final = b"x" * 100
KEYS: Final = 100_000
BEST_OF: Final = 3
BATCH_BYTES: Final = 1_000_000  # librdkafka's own
MEMORY_BYTES: Final = 256 << 20  # librdkafka may hold a gigabyte
WARM: Final = 20_000
_WAIT_S: Final = 60.0

Load = Mapping[str, Any]
Seconds = tuple[float, float]  # of the clock, of the processor


def confluent(load: Load) -> Seconds:
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": load["bootstrap"],
        "enable.idempotence": True,
        "queue.buffering.max.messages": 1_000_000,
        "partitioner": "murmur2_random",
    }
    if load["batch"]:
        settings["batch.size"] = load["batch"]
    producer = Producer(settings)
    topic, keys = load["topic"], _keys(load)

    def produce(count: int) -> None:
        for key in keys(count):
            try:
                producer.produce(topic, VALUE, key)
            except BufferError:
                producer.poll(0.01)
                producer.produce(topic, VALUE, key)
        producer.flush()

    return _timed(produce, load)


def kafka_python(load: Load) -> Seconds:
    from kafka import KafkaProducer

    batch = {"batch_size": load["batch"]} if load["batch"] else {}
    producer = KafkaProducer(bootstrap_servers=load["bootstrap"], linger_ms=5, **batch)
    topic, keys = load["topic"], _keys(load)

    def send(count: int) -> None:
        for key in keys(count):
            producer.send(topic, VALUE, key)
        producer.flush()

    return _timed(send, load)


def send(load: Load) -> Seconds:
    """`producer.send()`, once for each record."""
    with _ottla(load, buffer_memory=MEMORY_BYTES) as producer:
        topic, keys = load["topic"], _keys(load)

        def send(count: int) -> None:
            if load["keyed"]:
                for key in keys(count):
                    producer.send(topic, VALUE, key)
            else:
                for _ in range(count):
                    producer.send(topic, VALUE)
            producer.flush()

        return _timed(send, load)


def send_arrow(load: Load) -> Seconds:
    """`producer.send_arrow()`, a table of a million rows at a time."""
    import pyarrow as pa

    rows = 1_000_000
    columns = {"value": pa.array([VALUE] * rows)}
    if load["keyed"]:
        columns["key"] = pa.array(list(_keys(load)(rows)))
    table = pa.table(columns)
    key = "key" if load["keyed"] else None
    with _ottla(load) as producer:

        def send(count: int) -> None:
            for start in range(0, count, rows):
                piece = table.slice(0, min(rows, count - start))
                producer.send_arrow(load["topic"], piece, key=key)
            producer.flush()

        return _timed(send, load)


def _ottla(load: Load, **more: Any) -> Any:
    import ottla

    options = {"batch_size": load["batch"]} if load["batch"] else {}
    return ottla.Producer(bootstrap_servers=load["bootstrap"], **options, **more)


def _keys(load: Load) -> Callable[[int], Any]:
    if not load["keyed"]:
        return lambda count: (None for _ in range(count))
    known = [b"key %d" % number for number in range(KEYS)]
    return lambda count: (known[number % KEYS] for number in range(count))


def _timed(write: Callable[[int], None], load: Load) -> Seconds:
    write(WARM)
    time.sleep(3)  # kernels are loaded beside the first records
    write(WARM)
    cpu, clock = time.process_time(), time.perf_counter()
    write(load["records"])
    return time.perf_counter() - clock, time.process_time() - cpu


class Way(NamedTuple):
    """One way of writing, and what share of the records it is given: slow ones get fewer."""

    write: Callable[[Load], Seconds]
    partitions: int = 1
    batch: int | None = BATCH_BYTES
    share: float = 1.0


ARROW: Final = partial(Way, send_arrow, share=5.0)
SLOW: Final = partial(Way, kafka_python, share=0.1)
WAYS: Final[Mapping[str, Way]] = {
    "confluent-kafka produce()": Way(confluent),
    "kafka-python send()": SLOW(),
    "ottla send()": Way(send),
    "ottla send_arrow()": ARROW(),
    "confluent-kafka produce(), keyed over 12": Way(confluent, 12),
    "ottla send(), keyed over 12": Way(send, 12),
    "ottla send_arrow(), keyed over 12": ARROW(partitions=12),
    "confluent-kafka produce(), 16 KB batches": Way(confluent, batch=16_384, share=0.5),
    "kafka-python send(), as it comes": SLOW(batch=None),
    "ottla send(), as it comes": Way(send, batch=None, share=0.5),
    "ottla send_arrow(), as it comes": ARROW(batch=None),
}
AGAINST: Final[Mapping[str, str]] = {  # what a way is held against, by how its name ends
    "keyed over 12": "confluent-kafka produce(), keyed over 12",
    "": "confluent-kafka produce()",
}


class Rate(NamedTuple):
    records_per_s: float
    cpu_us: float
    broker: float


def measure(name: str, load: Load, broker_pid: int) -> Rate:
    """One way, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.clients_producer", "--write", name]
    before_s = cpu_s(broker_pid)
    done = subprocess.run(
        [*command, json.dumps(load)], check=True, capture_output=True, text=True, timeout=600
    )
    seconds, writer_s = map(float, done.stdout.split())
    broker = (cpu_s(broker_pid) - before_s) / seconds
    return Rate(load["records"] / seconds, writer_s / load["records"] * 1e6, broker)


def main(records: int, names: Sequence[str]) -> None:
    settings = {"flush.before.ack": "never"}
    rates: dict[str, Rate] = {}
    with tempfile.TemporaryDirectory() as folder, nodes.ottla(Path(folder), settings) as node:
        for name in names or WAYS:
            way, runs = WAYS[name], []
            for run in range(BEST_OF):
                load: dict[str, Any] = {
                    "bootstrap": node.bootstrap,
                    "topic": f"bench-{len(rates)}-{run}",
                    "keyed": way.partitions > 1,
                    "batch": way.batch,
                    "records": int(records * way.share),
                }
                with _topic(node.bootstrap, load["topic"], way.partitions):
                    runs.append(measure(name, load, node.pid))
            rate = rates[name] = max(runs)
            base = next(base for end, base in AGAINST.items() if name.endswith(end))
            first = rates.get(base, rate)
            print(
                f"{name:42} {rate.records_per_s:>11,.0f} records/s "
                f"{rate.records_per_s / first.records_per_s:6.2f}  {rate.cpu_us:6.2f} us CPU "
                f"{first.cpu_us / rate.cpu_us:6.2f}  broker {rate.broker:4.0%} of a core",
                flush=True,
            )


@contextmanager
def _topic(bootstrap: str, name: str, partitions: int) -> Iterator[None]:
    """A topic for one measurement, deleted afterwards so that disks do not fill."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        made.result(_WAIT_S)
    try:
        yield
    finally:
        for gone in admin.delete_topics([name]).values():
            gone.result(_WAIT_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        print(*WAYS[sys.argv[2]].write(json.loads(sys.argv[3])))
    else:
        main(int((sys.argv[1:] or ["1000000"])[0]), sys.argv[2:])

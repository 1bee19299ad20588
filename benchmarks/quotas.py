"""Promise: under a quota a client gets what Apache Kafka gives it, within 5 %.

Both brokers have the same quota on a client id; a producer or a consumer of librdkafka does what it
can. After a warm-up of 30 s the rate is measured over 60 s: `python -m benchmarks.quotas`, or
`python -m benchmarks.quotas 5 10` for a short look.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer

import ottla
from benchmarks.contenders import Contender, running
from benchmarks.scenario import KAFKA, OTTLA
from ottla.security.quotas.entities import DEFAULT, QuotaEntity

RATE: Final = 1_000_000
RECORD_BYTES: Final = 1_000
KEYS: Final = {"produce": "producer_byte_rate", "fetch": "consumer_byte_rate"}
LEVELS: Final[Mapping[str, QuotaEntity]] = {
    "client id": QuotaEntity(None, "limited"),
    "default client id": QuotaEntity(None, DEFAULT),
    "user": QuotaEntity("ANONYMOUS"),
    "default user, client id": QuotaEntity(DEFAULT, "limited"),
}


def main(warm_up_s: int = 30, measured_s: int = 60) -> int:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as contenders:
        chosen = [contender for contender in contenders if contender.name in (KAFKA, OTTLA)]
        worst = 0.0
        for level, entity in LEVELS.items():
            for drive in KEYS:
                rates = {
                    contender.name: _rate(contender, entity, drive, (warm_up_s, measured_s))
                    for contender in chosen
                }
                ratio = rates[OTTLA] / rates[KAFKA]
                worst = max(worst, abs(ratio - 1))
                shown = ", ".join(f"{name} {rate:,.0f} B/s" for name, rate in rates.items())
                print(f"{drive} by {level}: {shown}, ratio {ratio:.3f}", flush=True)
    return 0 if worst <= 0.05 else 1


def _rate(contender: Contender, entity: QuotaEntity, drive: str, seconds: tuple[int, int]) -> float:
    key, (warm_up_s, measured_s) = KEYS[drive], seconds
    with ottla.Admin(bootstrap_servers=contender.bootstrap) as admin, contender.topic(1) as topic:
        load: dict[str, Any] = {"bootstrap": contender.bootstrap, "topic": topic, "do": drive}
        load |= {"warm_up_s": warm_up_s, "measured_s": measured_s}
        if drive == "fetch":
            _fill(contender.bootstrap, topic, RATE * (warm_up_s + measured_s + 30))
        admin.alter_client_quotas({entity: {key: RATE}}).all()
        try:
            command = [sys.executable, "-m", "benchmarks.quotas", json.dumps(load)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            admin.alter_client_quotas({entity: {key: None}}).all()
    return float(done.stdout)


def _fill(bootstrap: str, topic: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "filler"})
    for _ in range(size // RECORD_BYTES):
        while True:
            try:
                producer.produce(topic, bytes(RECORD_BYTES))
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _drive(load: Mapping[str, Any]) -> float:
    """Bytes a second after the warm-up, in a process of its own."""
    step = _producing(load) if load["do"] == "produce" else _consuming(load)
    start = time.monotonic() + load["warm_up_s"]
    end = start + load["measured_s"]
    size = 0
    while (now := time.monotonic()) < end:
        done = step()
        size += done if now >= start else 0
    return size / float(load["measured_s"])


def _producing(load: Mapping[str, Any]) -> Callable[[], int]:
    delivered = [0]

    def on_delivery(error: object, _: object) -> None:
        assert error is None, error
        delivered[0] += RECORD_BYTES

    producer = Producer(
        {
            "bootstrap.servers": load["bootstrap"],
            "client.id": "limited",
            "queue.buffering.max.messages": 1_000,
            "batch.size": 100_000,
        }
    )

    def step() -> int:
        delivered[0] = 0
        try:
            producer.produce(load["topic"], bytes(RECORD_BYTES), on_delivery=on_delivery)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
        return delivered[0]

    return step


def _consuming(load: Mapping[str, Any]) -> Callable[[], int]:
    consumer = Consumer(
        {
            "bootstrap.servers": load["bootstrap"],
            "client.id": "limited",
            "group.id": "quotas",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 100_000,
            "queued.max.messages.kbytes": 200,
        }
    )
    consumer.subscribe([load["topic"]])
    return lambda: sum(len(record.value() or b"") for record in consumer.consume(500, 0.1))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(_drive(json.loads(sys.argv[1])))
    else:
        sys.exit(main(*map(int, sys.argv[1:])))

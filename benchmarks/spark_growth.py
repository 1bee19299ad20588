"""Promise: Spark reads a topic of many partitions, or of more bytes than it has memory, as before.

- 10, 100 and 1,000 partitions with the same records in all: the time of a `count()`, and of a
  stream's batches, from the start of the query to its end (`availableNow`, into Spark's `noop`)
- a topic of 5 GB on a Spark with 1 GB of memory, to `count()` and to a Parquet table

Beside Spark's own connector on Apache Kafka, as `spark_io` does it, with the most memory that the
Python workers held: of one (peak), and of all together (their own pages, and a share of those they
have in common). The connector has no such workers.

    python -m benchmarks.spark_growth
    python -m benchmarks.spark_growth partitions [records] [partitions …]
    python -m benchmarks.spark_growth size [gigabytes]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import rdkafka, spark_io
from benchmarks.contenders import rss_mb
from benchmarks.spark_io import OTTLA_SETTINGS, Side
from tools import nodes

PARTITIONS: Final = (10, 100, 1_000)
TURNS: Final = 3
"""The first is not counted."""
LARGE: Final = 1_000
"""Bytes of a record of the large topic."""
SAMPLE_S: Final = 0.2


class WorkerMemory:
    """The memory of the Python processes that Spark has started, while it is being watched."""

    def __init__(self) -> None:
        self.one_mb = 0.0
        self.all_mb = 0.0
        self._over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_S):
            total_mb = 0.0
            for pid in _workers():
                with suppress(OSError, ValueError):  # it has ended
                    self.one_mb = max(self.one_mb, rss_mb(pid, peak=True))
                    total_mb += _share_mb(pid)
            self.all_mb = max(self.all_mb, total_mb)

    def __str__(self) -> str:
        return f"workers {self.one_mb:,.0f} MB at most, {self.all_mb:,.0f} MB together"


def _workers() -> list[int]:
    """The Python processes below this one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return [pid for pid in parents if _is_below(pid, parents) and _is_worker(pid)]


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        program, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"python" in program and any(b"pyspark" in each for each in arguments)
    return False


def _share_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def stream(side: Side, records: int) -> None:
    """Everything that is in the topic, as a stream that ends there."""
    reader = side.spark.readStream.format(side.format).options(**side.own)
    reader = reader.option("kafka.bootstrap.servers", side.bootstrap)
    rows = reader.option("startingOffsets", "earliest").load()
    with tempfile.TemporaryDirectory(dir=side.folder) as checkpoint:
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seen = sum(report.numInputRows for report in query.recentProgress)
    assert seen == records, f"{seen} of {records} rows"


class Measured(NamedTuple):
    seconds: float
    memory: WorkerMemory


def best(job: Callable[[Side, int], None], side: Side, records: int, turns: int) -> Measured:
    """The best of all turns but the first."""
    taken: list[float] = []
    memory = WorkerMemory()
    with memory.watched():
        for _ in range(turns):
            start = time.perf_counter()
            job(side, records)
            taken.append(time.perf_counter() - start)
    return Measured(min(taken[1:] or taken), memory)


def compare(what: str, jobs: Mapping[str, Callable[[Side, int], None]], sides: Sequence[Side],
            records: int, turns: int) -> None:  # fmt: skip
    for name, job in jobs.items():
        seconds: dict[str, float] = {}
        for side in sides:
            measured = best(job, side, records, turns)
            seconds[side.format] = measured.seconds
            label = f"{what}, {name}"
            line = f"{label:34} {side.format:6} {measured.seconds:8.2f} s"
            if side.format == "ottla":
                line += f" {seconds['kafka'] / measured.seconds:6.2f}  {measured.memory}"
            print(line, flush=True)


@contextmanager
def both(folder: Path, memory: str) -> Iterator[list[Side]]:
    with (
        nodes.ottla(folder / "ottla", OTTLA_SETTINGS) as ours,
        nodes.kafka(folder / "kafka") as theirs,
        spark_io.session(folder, memory) as spark,
    ):
        yield [
            Side("kafka", theirs.bootstrap, spark, folder),
            Side("ottla", ours.bootstrap, spark, folder),
        ]


def filled(sides: Sequence[Side], partitions: int, records: int, size: int) -> list[Side]:
    """A topic of so many partitions on both sides, which are to read it."""
    topic = f"rows-{partitions}"
    for side in sides:
        side.topic(topic, partitions)
        load: dict[str, Any] = {"topic": topic, "partitions": partitions, "size": size}
        load.update(bootstrap=side.bootstrap, acks=1, bytes=records * size)
        assert int(rdkafka.produce(load)["records"]) == records
    return [side._replace(own={"subscribe": topic}) for side in sides]


def by_partitions(records: int, counts: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory() as name, both(Path(name), "2g") as sides:
        for partitions in counts:
            readers = filled(sides, partitions, records, spark_io.SIZE)
            jobs = {"count()": spark_io.count, "stream": stream}
            compare(f"{partitions:,} partitions", jobs, readers, records, TURNS)


def by_size(gigabytes: float) -> None:
    """One turn: what is read is larger than what is kept from one turn to the next."""
    with tempfile.TemporaryDirectory() as name, both(Path(name), "1g") as sides:
        records = int(gigabytes * 1e6) * 1_000 // LARGE
        readers = filled(sides, 4, records, LARGE)
        jobs = {"count()": spark_io.count, "Parquet": spark_io.parquet}
        compare(f"{gigabytes:g} GB, 1 GB of memory", jobs, readers, records, 1)


def main(args: Sequence[str] = ()) -> None:
    what, *numbers = args or ["all"]
    if what in ("partitions", "all"):
        records, *counts = [int(number) for number in numbers] or [1_000_000]
        by_partitions(records, counts or PARTITIONS)
    if what in ("size", "all"):
        by_size(float(numbers[0]) if numbers else 5.0)


if __name__ == "__main__":
    main(sys.argv[1:])

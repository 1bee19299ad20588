"""A program of its own: a stateful streaming query whose driver dies when it is told to.

    python killed_query.py SERVERS SOURCE TARGET CHECKPOINT [DIE_AT BATCH]

It copies every distinct value of a topic to another, a few records a batch. `DIE_AT` is a step of
`exactly_once.Step`; when the sink's commit of `BATCH` comes to it, everything of this program is
killed with SIGKILL: the driver, its JVM, every Python worker.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ottla.spark.exactly_once import Step
from ottla.spark.source import OttlaDataSource
from ottla.spark.writer import StreamWriter

PER_BATCH = 20


def die() -> None:
    """Kill every process of this program's session, oneself last."""
    me, session = os.getpid(), os.getsid(0)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != me:
            try:
                if os.getsid(int(folder.name)) == session:
                    os.kill(int(folder.name), signal.SIGKILL)
            except ProcessLookupError:
                continue
    os.kill(me, signal.SIGKILL)


class Deadly:
    """Watches a commit, and ends it."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def reached(self, step: Step) -> None:
        if step is self._step:
            die()


class MortalWriter(StreamWriter):
    """The sink, with somebody who watches one batch."""

    fatal: tuple[str, int] | None = None

    def commit(self, messages: list[Any], batchId: int) -> None:
        if self.fatal is not None and self.fatal[1] == batchId:
            self._watch = Deadly(Step(self.fatal[0]))
        super().commit(messages, batchId)


class MortalSource(OttlaDataSource):
    """`format("ottla")`, as the program registers it."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> MortalWriter:
        made = MortalWriter(*self._sink(schema))
        told = self.options.get("__die")
        if told:
            step, batch = told.split("@")
            made.fatal = (step, int(batch))
        return made


def main(servers: str, source: str, target: str, checkpoint: str, *fatal: str) -> None:
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "1h")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(MortalSource)
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .load()
        .selectExpr("cast(value as string) value")
        .dropDuplicates(["value"])
    )
    writer = (
        rows.writeStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
    )
    if fatal:
        writer = writer.option("__die", f"{fatal[0]}@{fatal[1]}")
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

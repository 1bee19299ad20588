"""A program of its own: a streaming query whose driver dies when it is told to.

    python killed_query.py KIND MASTER SERVERS SOURCE TARGET CHECKPOINT [DIE_AT BATCH]

`distinct` writes every value of a topic once to another, however often it is there: a query with
state. `copied` writes every record to the partition it was in. Either reads a few records a batch,
says `begun` when it runs, and ends when it has read what was there.

`DIE_AT` is a step of `exactly_once.Step`; when the sink's commit of `BATCH` comes to it, everything
of this program is killed with SIGKILL: the driver, its JVM, every executor and Python worker.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ottla.spark.exactly_once import Step
from ottla.spark.pipelines.session import LOCAL_CHECKPOINTS
from ottla.spark.source import OttlaDataSource
from ottla.spark.writer import StreamWriter
from tests.spark.quick_jvm import QUICK_SPARK

PER_BATCH = 20
BEGUN = "begun"


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


def session(master: str) -> SparkSession:
    settings = {
        **QUICK_SPARK,
        **LOCAL_CHECKPOINTS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.maintenanceInterval": "1h",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(MortalSource)
    return spark


def rows(kind: str, spark: SparkSession, servers: str, source: str) -> DataFrame:
    read = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .option("minRecordsPerPartition", 1)  # a task for each partition: more to kill
        .load()
    )
    if kind == "copied":
        return read.select("key", "value", "partition")
    return read.selectExpr("cast(value as string) value").dropDuplicates(["value"])


def main(kind: str, master: str, servers: str, source: str, *places: str) -> None:
    target, checkpoint, *fatal = places
    writer = (
        rows(kind, session(master), servers, source)
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
    )
    if fatal:
        writer = writer.option("__die", f"{fatal[0]}@{fatal[1]}")
    query = writer.trigger(availableNow=True).start()
    print(BEGUN, flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

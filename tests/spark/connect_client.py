"""A program of a user of Spark Connect: no JVM of its own, and `format("ottla")` on the server.

    python connect_client.py sc://HOST:PORT BROKER FOLDER

It reads the topic `in` in batches and as a stream, and writes `copied` and `streamed`; what it has
seen comes as JSON. A process of its own: a session of Spark Connect and one with a JVM do
not go together in one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import ottla.spark


class Jobs:
    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self._spark = spark
        self._servers = {"kafka.bootstrap.servers": servers}
        self._folder = folder

    def read(self, **options: str) -> DataFrame:
        reader = self._spark.read.format("ottla").options(**self._servers)
        return reader.options(subscribe="in", **options).load()

    def write(self, rows: DataFrame, topic: str) -> None:
        writer = rows.write.format("ottla").options(**self._servers).mode("append")
        writer.option("topic", topic).save()

    def stream(self, topic: str) -> int:
        """All there is, into a topic; how many rows this run has read."""
        reader = self._spark.readStream.format("ottla").options(**self._servers)
        rows = reader.options(subscribe="in", startingOffsets="earliest").load()
        writer = rows.select("key", "value").writeStream.format("ottla").options(**self._servers)
        writer = writer.option("topic", topic).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._folder / topic)).start()
        query.awaitTermination()
        return sum(report.numInputRows for report in query.recentProgress)

    def error(self, **options: str) -> str:
        """What a mistake in an option is told as."""
        try:
            self.read(**options).count()
        except PySparkException as error:
            return str(error)
        return ""


def main(url: str, servers: str, folder: str) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    ottla.spark.register(spark)
    jobs = Jobs(spark, servers, Path(folder))
    rows = jobs.read()
    seen: dict[str, Any] = {
        "values": sorted(row.value.decode() for row in rows.select("value").collect()),
        "later": rows.where("partition = 1 AND offset >= 5").count(),
        "error": jobs.error(startingOffsets="sometime"),
    }
    jobs.write(rows.select("key", "value"), "copied")
    seen["streamed"] = jobs.stream("streamed")
    jobs.write(spark.createDataFrame([(b"late", b"late")], "key BINARY, value BINARY"), "in")
    seen["streamed again"] = jobs.stream("streamed")
    print(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

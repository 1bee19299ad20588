"""The broker, as a Spark test wants it."""

from __future__ import annotations

import itertools
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from tests.spark.committed_reader import committed_values

_names = itertools.count()


class Cluster:
    """The broker, as a Spark test wants it."""

    def __init__(self, servers: str, spark: SparkSession, folder: Path) -> None:
        self.servers = servers
        self._spark = spark
        self._folder = folder

    def topic(self, partitions: int = 2, **configs: str) -> str:
        """A new topic of its own."""
        name = f"topic-{next(_names)}"
        with Admin(bootstrap_servers=self.servers) as admin:
            admin.create_topics([NewTopic(name, partitions, configs=configs)]).all()
        return name

    def checkpoint(self) -> str:
        return str(self._folder / f"checkpoint-{next(_names)}")

    def fill(
        self,
        topic: str,
        values: list[str],
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Records with these values, and keys like them."""
        with Producer(bootstrap_servers=self.servers) as producer:
            for value in values:
                data = value.encode()
                producer.send(topic, data, key=data, partition=partition, timestamp_ms=timestamp_ms)

    def read(self, topic: str, format: str = "ottla", **options: str) -> DataFrame:
        reader = self._spark.read.format(format).option("kafka.bootstrap.servers", self.servers)
        if not {"assign", "subscribePattern"} & options.keys():
            reader = reader.option("subscribe", topic)
        return reader.options(**options).load()

    def stream(self, topic: str, format: str = "ottla", **options: str) -> DataFrame:
        reader = self._spark.readStream.format(format)
        reader = reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", topic)
        return reader.option("startingOffsets", "earliest").options(**options).load()

    def pour(
        self, rows: DataFrame, topic: str | None, checkpoint: str, **options: str
    ) -> StreamingQuery:
        """Stream everything there is into a topic, and end."""
        writer = rows.writeStream.format(options.pop("format", "ottla"))
        writer = writer.option("kafka.bootstrap.servers", self.servers)
        if topic is not None:
            writer = writer.option("topic", topic)
        writer = writer.option("checkpointLocation", checkpoint).options(**options)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    def write(self, rows: DataFrame, topic: str | None, **options: str) -> None:
        writer = rows.write.format(options.pop("format", "ottla")).mode("append")
        writer = writer.option("kafka.bootstrap.servers", self.servers)
        if topic is not None:
            writer = writer.option("topic", topic)
        writer.options(**options).save()

    def values(self, topic: str) -> list[str]:
        """What a reader of committed records sees."""
        return sorted(value.decode() for value in committed_values(self.servers, topic) if value)

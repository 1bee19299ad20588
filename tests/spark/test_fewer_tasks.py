"""A batch that is run again after a death, by more tasks than before or by fewer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ottla.config.client import ClientConfig
from ottla.spark.abandoned_transactions import left_open
from ottla.spark.commit_decisions import Entry, Sink
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection
from ottla.spark.exactly_once import Step
from ottla.spark.source import OttlaDataSource
from ottla.spark.writer import StreamWriter
from tests.spark.spark_cluster import Cluster

VALUES = [f"{at:02}" for at in range(20)]


def mortal(step: Step) -> type[OttlaDataSource]:
    """The sink, whose driver dies at this step of its first batch: it does nothing afterwards.

    Classes of a function, because Spark sends those to its processes as they are.
    """

    class DriverDied(Exception):
        pass

    class Watch:
        def reached(self, reached: Step) -> None:
            if reached.value == step.value:
                raise DriverDied(step.value)

    class MortalWriter(StreamWriter):
        def commit(self, messages: list[Any], batchId: int) -> None:
            self._watch = Watch()
            super().commit(messages, batchId)

        def abort(self, messages: list[Any], batchId: int) -> None:
            """The dead do not tidy up."""

    class MortalSource(OttlaDataSource):
        @classmethod
        def name(cls) -> str:
            return "ottla-mortal"

        def streamWriter(self, schema: StructType, overwrite: bool) -> MortalWriter:
            return MortalWriter(*self._sink(schema))

    return MortalSource


def query_of(checkpoint: str) -> str:
    id: str = json.loads(Path(checkpoint, "metadata").read_text())["id"]
    return id


def entry_of(cluster: Cluster, query: str) -> Entry:
    client = {"bootstrap.servers": cluster.servers}
    with Connection(ClientConfig.from_options({}, client)) as connection:
        found = connection.run(StoredCommitLog(Sink(query), connection, client).read())
    assert found is not None
    return found


@pytest.mark.spec("APP-11")
@pytest.mark.parametrize(
    ("step", "before", "after"), [(Step.FENCED, 4, 1), (Step.DECIDED, 4, 1), (Step.FENCED, 1, 4)]
)
def test_a_batch_run_again_by_another_number_of_tasks_is_there_once(
    cluster: Cluster, spark: SparkSession, step: Step, before: int, after: int
) -> None:
    source, target, checkpoint = cluster.topic(1), cluster.topic(2), cluster.checkpoint()
    cluster.fill(source, VALUES)

    def pour(tasks: int, format: str) -> None:
        each = str(len(VALUES) // tasks)
        rows = cluster.stream(source, maxRecordsPerPartition=each).select("value")
        cluster.pour(rows, target, checkpoint, format=format)

    spark.dataSource.register(mortal(step))
    with pytest.raises(PySparkException, match="DriverDied"):
        pour(before, "ottla-mortal")
    query = query_of(checkpoint)
    config = ClientConfig.from_options({"bootstrap_servers": cluster.servers})
    assert len(left_open(config, query)) == before
    assert cluster.values(target) == []
    pour(after, "ottla")
    assert cluster.values(target) == VALUES
    assert left_open(config, query) == []
    # Who was decided has written: the tasks of the first life, or those of the second.
    wrote = after if step is Step.FENCED else before
    assert len(entry_of(cluster, query).transactions) == wrote

"""A program for `spark-submit`: a pipeline, and where its executors have Ottla from.

    spark-submit submitted_pipeline.py FILE

Prints `python PATH` and `ottla PATH` of an executor, runs the file once, and prints `rows N`.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import ottla.spark
from ottla.spark import pipelines


def place(_: int) -> tuple[str, str]:
    import ottla

    return sys.executable, str(ottla.__file__)


def main(path: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    ottla.spark.register(spark)
    python, found = spark.sparkContext.parallelize([1], 1).map(place).first()
    print(f"python {python}\nottla {found}", flush=True)
    totals = pipelines.run(path, once=True, spark=spark)
    print(f"rows {sum(total.rows_in for total in totals.values())}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

"""How Spark finds `format("ottla")` by itself.

Spark looks for importable modules named `pyspark_…` and registers their `DefaultSource` in every
session. Filters are pushed down only after `ottla.spark.register(spark, push_filters=True)`.
"""

from ottla.spark.source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]

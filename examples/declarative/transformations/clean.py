"""Page views without robots, from one topic to another."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SERVERS = os.environ.get("OTTLA_BOOTSTRAP_SERVER", "localhost:9092")

dp.create_sink(
    "clean_views",
    format="ottla",
    options={"kafka.bootstrap.servers": SERVERS, "topic": "clean-views"},
)


@dp.append_flow(target="clean_views")
def clean() -> DataFrame:
    views = (
        SparkSession.active()
        .readStream.format("ottla")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "page-views")
        .option("startingOffsets", "earliest")
        .load()
    )
    view = F.from_json(views["value"].cast("string"), "user STRING, url STRING")
    return (
        views.select("key", "value", view.alias("view"))
        .where("view.user <> 'robot'")
        .select("key", "value")
    )

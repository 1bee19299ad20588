"""Sessions of clicks, as a step in Python.

Spark's session windows hold the state; what a session led to is judged by a function in Python
that runs on the executors.
"""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

STAGES = {"/cart": "cart", "/checkout": "checkout", "/thanks": "order"}


def sessions(clicks: DataFrame, gap: str) -> DataFrame:
    """One row for each session; `gap` is the pause that ends it."""
    visit = F.session_window("at", gap)
    grouped = clicks.groupBy("user", visit.alias("visit")).agg(
        F.count("*").alias("clicks"),
        F.min_by("url", "at").alias("landing"),
        F.max_by("url", "at").alias("leaving"),
        F.collect_list("url").alias("urls"),
    )
    led_to = F.pandas_udf(furthest, "string")
    return grouped.select(
        "user",
        F.col("visit.start").alias("start"),
        "clicks",
        "landing",
        "leaving",
        led_to("urls").alias("led_to"),
    )


def furthest(journeys: pd.Series) -> pd.Series:
    """The last stage of an order that a session has reached."""
    return journeys.map(stage)


def stage(urls: list[str]) -> str:
    reached = [name for url, name in STAGES.items() if url in urls]
    return reached[-1] if reached else "browsing"

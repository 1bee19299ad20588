"""The pipeline of a shop, run on Spark, and the check that what went in came out.

Owns: the run. When its time is over people leave the shop, the queries finish what is there, and
the records of the topic, the rows of the table and the dead letters are counted against what was
sent.
"""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ottla
from ottla.cli.console import table
from ottla.cli.pipeline.display import display
from ottla.client.admin import NewTopic
from ottla.model.clock import SystemClock
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.report import draw, read
from ottla.spark.pipelines.running_queries import History, Run, history_path
from ottla.spark.pipelines.session import session
from ottla.spark.pipelines.spec import FilesTarget, Pipeline
from ottla.spark.pipelines.topic_ends import TopicEnds
from ottla.spark.pipelines.views import Views
from tools.demo.shoppers import TOPICS, Shoppers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE: Final = Path(__file__).parent
PICTURE: Final = "ottla-shop.png"
"""In the folder for temporary files: a checkout stays as it was."""
WRITTEN: Final = ("shop-events", "shop-dead", "top-pages", "visits")
PARTITIONS: Final = 2
POLL_S: Final = 3.0


def show(bootstrap: str, folder: Path, seconds: float | None, stop: threading.Event) -> bool:
    """Run until the time is over, or until stopped; whether everything that went in came out."""
    pipeline = opened(bootstrap, folder)
    with session(pipeline.name, None, pipeline.spark) as spark:
        return show_on(spark, pipeline, seconds, stop)


def show_on(
    spark: SparkSession, pipeline: Pipeline, seconds: float | None, stop: threading.Event
) -> bool:
    """The same on a Spark that is there, for a pipeline that `opened` gives."""
    bootstrap = pipeline.bootstrap
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS) for name in (*TOPICS, *WRITTEN)]).all()
    shoppers, leave = Shoppers(bootstrap, seconds=seconds), threading.Event()
    crowd = threading.Thread(target=shoppers.go_on_until, args=(leave,), name="shoppers")
    shown = display(as_json=False)
    clock = SystemClock()
    with TopicEnds(pipeline.sources, clock) as ends, shown:
        made = list(outputs(pipeline, Views(spark, pipeline)))
        closing = Closing(shoppers, stop)
        running = Run(
            made,
            ends,
            clock,
            [shown.on_batch, History(pipeline.checkpoint).on_batch],
            [closing.look],
        )
        closing.running = running
        crowd.start()
        try:
            running.until(closing.over)
        finally:
            leave.set()
            crowd.join()
    rows = spark.read.parquet(_lake(pipeline)).count()
    shown.summary(running.totals.values())
    _draw(pipeline)
    return checked(bootstrap, shoppers, rows) if closing.caught_up else True


def opened(bootstrap: str, folder: Path) -> Pipeline:
    """The shop's file, for this broker and in this folder."""
    made = yaml_file.open_pipeline(HERE / "shop.yaml", [f"bootstrap={bootstrap}"])
    lake = FilesTarget(str(folder / "lake"))
    sinks = tuple(
        replace(sink, target=lake) if isinstance(sink.target, FilesTarget) else sink
        for sink in made.sinks
    )
    return replace(made, sinks=sinks, checkpoint=str(folder / "checkpoints"))


def _lake(pipeline: Pipeline) -> str:
    """Where the table of events is."""
    [target] = [sink.target for sink in pipeline.sinks if isinstance(sink.target, FilesTarget)]
    return target.path


class Closing:
    """When the shop closes: people have left, and the queries have read what they left."""

    def __init__(self, shoppers: Shoppers, stop: threading.Event) -> None:
        self.over = threading.Event()
        self.caught_up = False
        self.running: Run | None = None
        self._shoppers = shoppers
        self._stop = stop

    def look(self) -> None:
        if self._stop.is_set():
            self.over.set()
        if self._shoppers.done.is_set() and self.running is not None:
            sent = self._shoppers.sent.total()
            self.caught_up = all(one.rows_in >= sent for one in self.running.totals.values())
            if self.caught_up:
                self.over.set()


def checked(bootstrap: str, shoppers: Shoppers, rows: int) -> bool:
    """Count what came out against what went in."""
    good, bad = shoppers.sent[True], shoppers.sent[False]
    found = [
        ("events in the topic shop-events", good, _count(bootstrap, "shop-events")),
        ("events in the Parquet table", good, rows),
        ("dead letters", bad, _count(bootstrap, "shop-dead")),
    ]
    cells = [(what, f"{put:,}", f"{got:,}", put == got) for what, put, got in found]
    table(f"{good + bad:,} events went in", ("what", "expected", "found", "equal"), cells)
    return all(put == got for _, put, got in found)


def _count(bootstrap: str, topic: str) -> int:
    consumer: ottla.Consumer[bytes, bytes] = ottla.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    with consumer:
        consumer.assign([ottla.TopicPartition(topic, index) for index in range(PARTITIONS)])
        found = 0
        while records := consumer.poll(POLL_S):
            found += len(records)
    return found


def _draw(pipeline: Pipeline) -> None:
    history = history_path(pipeline.checkpoint)
    if history is not None and history.is_file():
        picture = Path(tempfile.gettempdir(), PICTURE)
        draw(read(history), "What the shop's queries did", picture)
        print(f"{picture}: throughput and lag, drawn")

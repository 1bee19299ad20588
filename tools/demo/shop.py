"""The pipeline of a shop, run on Spark, and the check that what went in came out.

Owns: the run. When its time is over people leave the shop, the queries finish what is there, and
the records of the topic, the rows of the table and the dead letters are counted against what was
sent.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ottla
from ottla.cli.pipeline.display import Lines, LiveTable
from ottla.client.admin import NewTopic
from ottla.client.consumer.record import Record
from ottla.model.clock import SystemClock
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.dlq.letters import REASON_HEADER
from ottla.spark.pipelines.progress import QueryProgress, QueryTotal
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.report import draw, read
from ottla.spark.pipelines.running_queries import History, Run, history_path
from ottla.spark.pipelines.session import session
from ottla.spark.pipelines.spec import FilesTarget, Pipeline
from ottla.spark.pipelines.topic_ends import TopicEnds
from ottla.spark.pipelines.views import Views
from tools.demo.interrupts import Interrupts
from tools.demo.shoppers import TOPICS, Shoppers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE: Final = Path(__file__).parent
RESULTS: Final = "ottla-shop"
"""A folder in the one for temporary files, made anew by each run: a checkout stays as it was."""
PICTURE: Final = "queries.png"
TABLE: Final = "events"
FLOW: Final = """\
  page-views, searches, orders   three topics, 500 events/s, 1 in 100 invalid
    -> clean events              the topic shop-events, and a table in Parquet
    -> pages of the minute       the topic top-pages
    -> visits                    the topic visits, 10 s after the last event
    -> refused events            the topic shop-dead, each with the reason"""
LINE: Final = "{:<50} {:>9} {:>9}  {}"
WRITTEN: Final = ("shop-events", "shop-dead", "top-pages", "visits")
PARTITIONS: Final = 2
POLL_S: Final = 3.0
EVERY_S: Final = 5.0


def show(
    bootstrap: str, folder: Path, seconds: float | None, interrupts: Interrupts
) -> bool | None:
    """Run until the time is over, or until interrupted; whether everything that went in came out,
    None if it was ended before that could be known."""
    results = Path(tempfile.gettempdir(), RESULTS)
    shutil.rmtree(results, ignore_errors=True)
    pipeline = opened(bootstrap, folder, results)
    print(FLOW, flush=True)
    with session(pipeline.name, None, pipeline.spark) as spark:
        return show_on(spark, pipeline, seconds, interrupts)


def show_on(
    spark: SparkSession, pipeline: Pipeline, seconds: float | None, interrupts: Interrupts
) -> bool | None:
    """The same on a Spark that is there, for a pipeline that `opened` gives."""
    bootstrap = pipeline.bootstrap
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS) for name in (*TOPICS, *WRITTEN)]).all()
    shoppers, leave = Shoppers(bootstrap, seconds=seconds), interrupts.closing
    crowd = threading.Thread(target=shoppers.go_on_until, args=(leave,), name="shoppers")
    made = list(outputs(pipeline, Views(spark, pipeline)))
    shown = LiveTable(is_kept=False) if sys.stdout.isatty() else FewLines(len(made))
    clock = SystemClock()
    with TopicEnds(pipeline.sources, clock) as ends, shown:
        closing = Closing(shoppers, interrupts)
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
    if not closing.caught_up or not shoppers.sent:
        print("Ended before everything that was sent had been read.")
        return None
    rows = spark.read.parquet(_lake(pipeline)).count()
    is_equal = checked(bootstrap, shoppers, rows, running.totals.values())
    print(f"The table:   {_lake(pipeline)} (Parquet)")
    _draw(pipeline)
    return is_equal


class FewLines(Lines):
    """What batches do, for a pipe: a line every five seconds, once every query has begun."""

    def __init__(self, queries: int) -> None:
        self._queries = queries
        self._said_s = 0.0
        self._rows: Counter[str] = Counter()
        self._behind: dict[str, int] = {}

    def on_batch(self, progress: QueryProgress) -> None:
        self._rows[progress.query] += progress.rows_in
        self._behind[progress.query] = progress.lag_records or 0
        now_s = time.monotonic()
        if len(self._rows) == self._queries and now_s - self._said_s >= EVERY_S:
            self._said_s = now_s
            read, behind = min(self._rows.values()), max(self._behind.values())
            print(f"  {read:,} events through every query, {behind:,} behind", flush=True)


def opened(bootstrap: str, folder: Path, results: Path) -> Pipeline:
    """The shop's file, for this broker; its checkpoints in one folder, its table in another."""
    made = yaml_file.open_pipeline(HERE / "shop.yaml", [f"bootstrap={bootstrap}"])
    lake = FilesTarget(str(results / TABLE))
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

    def __init__(self, shoppers: Shoppers, interrupts: Interrupts) -> None:
        self.over = threading.Event()
        self.caught_up = False
        self.running: Run | None = None
        self._shoppers = shoppers
        self._interrupts = interrupts
        self._said = False

    def look(self) -> None:
        if self._interrupts.now.is_set():
            self.over.set()
        if self._interrupts.closing.is_set() and not self._said:
            self._said = True
            print("The shop closes: the queries read what is left (Ctrl-C again ends at once).")
        if self._shoppers.done.is_set() and self.running is not None:
            sent = self._shoppers.sent.total()
            self.caught_up = all(one.rows_in >= sent for one in self.running.totals.values())
            if self.caught_up:
                self.over.set()


def checked(bootstrap: str, shoppers: Shoppers, rows: int, totals: Iterable[QueryTotal]) -> bool:
    """Count what came out against what went in; how fast, and what was refused and why."""
    good, bad = shoppers.sent[True], shoppers.sent[False]
    reasons = Counter(_reason(record) for record in _records(bootstrap, "shop-dead"))
    found = [
        ("clean events in the topic shop-events", good, len(_records(bootstrap, "shop-events"))),
        ("clean events in the table", good, rows),
        ("refused events in the topic shop-dead", bad, reasons.total()),
    ]
    speeds = (f"{one.query} {one.rows_in * 1000 / max(one.busy_ms, 1):,.0f}" for one in totals)
    print(f"Events/s while busy: {', '.join(speeds)}")
    print(LINE.format(f"{good + bad:,} events went in, and out came", "expected", "found", "equal"))
    for what, put, got in found:
        print(LINE.format(f"  {what}", f"{put:,}", f"{got:,}", "yes" if put == got else "NO"))
    for reason, count in reasons.most_common():
        print(LINE.format(f"    because: {reason}", "", f"{count:,}", "").rstrip())
    return all(put == got for _, put, got in found)


def _reason(record: Record[bytes, bytes]) -> str:
    return (dict(record.headers)[REASON_HEADER] or b"").decode()


def _records(bootstrap: str, topic: str) -> list[Record[bytes, bytes]]:
    """Every committed record of a topic."""
    consumer: ottla.Consumer[bytes, bytes] = ottla.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    with consumer:
        partitions = [ottla.TopicPartition(topic, index) for index in range(PARTITIONS)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: list[Record[bytes, bytes]] = []
        while any(consumer.position(tp) < ends[tp] for tp in partitions):
            found += consumer.poll(POLL_S)
    return found


def _draw(pipeline: Pipeline) -> None:
    history = history_path(pipeline.checkpoint)
    if history is not None and history.is_file():
        picture = Path(_lake(pipeline)).with_name(PICTURE)
        draw(read(history), "What the shop's queries did", picture)
        print(f"The picture: {picture} (events a second, and how far behind)")

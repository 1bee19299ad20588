"""The steps of a sink: what a task does with its rows, and the driver with what tasks have done.

Owns: which steps of `exactly_once` a write, a commit and an abort are. Never: keeps state between
calls, except what stays true of a run.

A batch that was decided before a restart is drained, not written: the rows must be taken all the
same, because a stateful query commits its state when they have been.

Spark does not hand the batch to a writer, but the task's properties have it, with the query and
the run: a run is one life of a query, from `start` to its end (Spark makes it the job group).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from ottla.client.cluster import Target
from ottla.client.errors import refusal
from ottla.client.producer.sync import Producer
from ottla.client.producer.transactions.coordinator_requests import INIT_PRODUCER_ID
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.config.client import ProducerConfig
from ottla.model.errors import KafkaError, UserError
from ottla.spark import exactly_once
from ottla.spark.abandoned_transactions import end_what_jobs_left
from ottla.spark.commit_decisions import Entry, Sink, check_turn, job_name
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection, shared_connection, shared_producer
from ottla.spark.exactly_once import NoStepListener, StepListener
from ottla.spark.options import SinkOptions
from ottla.spark.row_sender import RowSender
from ottla.spark.rows import SinkColumns
from ottla.spark.user_errors import as_user_errors
from ottla.spark.worker_daemon import keep
from ottla.spark.writer import JOB_BATCH, Work

if TYPE_CHECKING:
    import pyarrow as pa

QUERY: Final = "sql.streaming.queryId"
RUN: Final = "spark.jobGroup.id"
BATCH: Final = "streaming.sql.batchId"
MAX_NAMES: Final = 100
TAKEOVER_WAIT_MS: Final = 100
"""A run starts with many tasks at once. The first takes the commit log over; the others wait this
long between two reads of it, as many as their number, before they do it themselves."""
MAX_TAKEOVER_READS: Final = 20


class BatchIdentity(NamedTuple):
    """One batch of one run of one query."""

    query: str
    run: str
    batch: int


class TaskIdentity(NamedTuple):
    """One attempt of one task."""

    partition: int
    attempt: str
    turn: BatchIdentity | None
    """None outside of a streaming query."""


def current_task() -> TaskIdentity:
    """The task that this process does now."""
    context = TaskContext.get()
    assert context is not None, "a writer writes inside a task"
    query, run, batch = (context.getLocalProperty(name) for name in (QUERY, RUN, BATCH))
    turn = None
    if query is not None and run is not None and batch is not None:
        turn = BatchIdentity(query, run, int(batch))
    return TaskIdentity(context.partitionId(), str(context.attemptNumber()), turn)


def begin_job(options: SinkOptions) -> str | None:
    """A name for a batch write that is all or nothing: the cluster numbers them."""
    if not options.exactly_once:
        return None
    connection = _connection(options)
    with as_user_errors():
        return connection.run(_begin_job(connection, options))


def end_job(options: SinkOptions, job: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Commit a batch write; a job that is done leaves nothing to remember."""
    ledger = _ledger(options, Sink(job))
    listed = _listed_transactions(messages)
    _connection(options).run(exactly_once.decide_job(ledger, job, JOB_BATCH, listed))


def abandon_job(options: SinkOptions, job: str) -> None:
    """Give up a batch write: all that its tasks have prepared is aborted."""
    _connection(options).run(exactly_once.end(_ledger(options, Sink(job))))


def write_rows(
    options: SinkOptions,
    columns: SinkColumns,
    batches: Iterator[pa.RecordBatch],
    name: str | None,
    job: str | None,
) -> Work:
    """Write the rows of a task as the options say."""
    keep()
    doing = current_task()
    if not options.exactly_once:
        with shared_producer(options.client) as producer:
            return Work(_all_sent(RowSender(producer, columns, options.topic), batches))
    if doing.turn is not None and name is not None:
        turn = doing.turn
        sink, run, batch = Sink(turn.query, name), turn.run, turn.batch
    elif job is None:
        raise UserError("ottla.sink: only for writes inside foreachBatch")
    else:
        sink, run, batch = Sink(job), job, JOB_BATCH
    entry = _entry(options, sink, run, doing.partition if job is None else None)
    if entry.is_decided(batch):
        for _ in batches:
            pass
        return Work(sink=sink, run=run, batch=batch)
    check_turn(sink, entry, run, batch)
    ids = (
        sink.transactional_id(entry.run_epoch, doing.partition, doing.attempt, again)
        for again in range(MAX_NAMES)
    )
    records, prepared = _prepare(options, columns, batches, ids)
    if job is not None and prepared is not None:
        _connection(options).run(exactly_once.stay(_ledger(options, sink), run, batch, prepared))
    return Work(records, prepared, sink, run, batch)


def settle(
    options: SinkOptions,
    messages: Sequence[WriterCommitMessage | None],
    watch: StepListener | None = None,
) -> None:
    """Decide the batch that the tasks have prepared."""
    work_done = next(
        (work for work in messages if isinstance(work, Work) and work.sink is not None), None
    )
    if work_done is None or work_done.sink is None:
        return  # at least once, or a batch without a task: there is nothing to decide
    listed = _listed_transactions(messages)
    ledger = _ledger(options, work_done.sink)
    _connection(options).run(
        exactly_once.decide(
            ledger, work_done.run, work_done.batch, listed, watch or NoStepListener()
        )
    )


def unsettle(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Give up a batch; what tasks have left that sent no message is found by the next run."""
    work_done = next(
        (work for work in messages if isinstance(work, Work) and work.sink is not None), None
    )
    if work_done is None or work_done.sink is None:
        return
    ledger = _ledger(options, work_done.sink)
    _connection(options).run(
        exactly_once.give_up(ledger, work_done.run, work_done.batch, _listed_transactions(messages))
    )


def _listed_transactions(
    messages: Sequence[WriterCommitMessage | None],
) -> list[PreparedTransaction]:
    work_done = (work for work in messages if isinstance(work, Work))
    return [work.prepared for work in work_done if work.prepared is not None]


_entries: dict[tuple[Sink, str], Entry] = {}
"""What this process has learned of runs. An entry stays true of its run: see `exactly_once`."""


def _entry(options: SinkOptions, sink: Sink, run: str, partition: int | None) -> Entry:
    """What the ledger says of a run; `partition` is a task's number, None in a batch job."""
    entry = _entries.get((sink, run))
    if entry is None:
        ledger = _ledger(options, sink)
        entry = _connection(options).run(
            exactly_once.join(ledger, run)
            if partition is None
            else _wait_for_takeover(ledger, run, partition)
        )
        _entries.clear()  # of a run before
        _entries[sink, run] = entry
    return entry


async def _wait_for_takeover(ledger: StoredCommitLog, run: str, partition: int) -> Entry:
    for _ in range(min(partition, MAX_TAKEOVER_READS)):
        entry = await ledger.read()
        if entry is not None and entry.run == run:
            return entry
        await asyncio.sleep(TAKEOVER_WAIT_MS / 1e3)
    return await exactly_once.take_over(ledger, run)


def _prepare(
    options: SinkOptions,
    columns: SinkColumns,
    batches: Iterator[pa.RecordBatch],
    ids: Iterator[str],
) -> tuple[int, PreparedTransaction | None]:
    """The rows in a transaction that waits for its decision; none where there are no rows."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return 0, None
    for id in ids:
        with Producer(
            config=options.client,
            transactional_id=id,
            transaction_two_phase_commit_enable=True,
        ) as producer:
            # A name that an attempt before us has prepared under is not ours to take from it.
            if producer.init_transactions(keep_prepared=True) is not None:
                continue
            with _aborted_by_failure(producer):
                sender = RowSender(producer, columns, options.topic)
                sender.send(first)
                records = _all_sent(sender, batches)
                return records, producer.prepare_transaction()
    raise UserError(
        f"{MAX_NAMES} transactions of one task are open; see: ottla transactions abort --query"
    )


@contextmanager
def _aborted_by_failure(producer: Producer) -> Iterator[None]:
    """A transaction that is left open only if all went well: it has no timeout."""
    producer.begin()
    try:
        yield
    except BaseException:
        with suppress(KafkaError, OSError):  # who comes next finds it, and the failure is told
            producer.abort()
        raise


def _all_sent(sender: RowSender, batches: Iterator[pa.RecordBatch]) -> int:
    for batch in batches:
        if batch.num_rows:
            sender.send(batch)
    sender.finish()
    return sender.records


async def _begin_job(connection: Connection, options: SinkOptions) -> str:
    number, _ = await asyncio.gather(
        _number(connection), end_what_jobs_left(connection, options.client)
    )
    job = job_name(number)
    await exactly_once.begin(_ledger(options, Sink(job)), job)
    return job


async def _number(connection: Connection) -> int:
    reply = await connection.session.once(
        Target.ANY, INIT_PRODUCER_ID, {"transactional_id": None, "transaction_timeout": 0}
    )
    if reply.error_code:
        raise refusal(reply.error_code)
    number: int = reply.producer_id
    return number


def _ledger(options: SinkOptions, sink: Sink) -> StoredCommitLog:
    return StoredCommitLog(sink, _connection(options), options.client)


def _connection(options: SinkOptions) -> Connection:
    return shared_connection(ProducerConfig, options.client)

"""Exactly once: who may decide a batch of a streaming query, and what the decision is.

Pure. Owns: the ledger's entry for one sink of one query, the names of its transactions, and every
decision about them: taking over, deciding, replaying, what may be aborted and what never.
Never: sends a request; `commit_log` carries out what is decided here.

The rules that make it safe:

- A run takes the ledger over before any of its tasks writes (`taken_over`). From then on an earlier
  run finds another name there, and can decide nothing.
- A transaction is aborted only by whoever holds the ledger, only after those on the decided list
  have ended, and only if it belongs to this run or an earlier one: a later may be at work. A run
  that has lost the ledger aborts what it prepared itself and is not on the list.
- The list of a decision stays in the entry until the next decision, so that anybody who comes later
  can carry it through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ottla.client.producer.transactions.state import PreparedTransaction

TOPIC: Final = "__ottla_sink_commits"
FORMAT: Final = 1
JOB: Final = "batch-"
NO_BATCH: Final = -1
BY_COMMAND: Final = "ended by command"
FIRST_RUN_EPOCH: Final = 1
REMEMBERED_RUNS: Final = 32
"""Earlier runs whose names are kept, so that one of them cannot take over again."""


class Superseded(Exception):
    """Another run of the query has begun since: this one must end."""

    def __init__(self, query: str, run: str, by: str) -> None:
        self.about = (query, run, by)
        super().__init__(
            f"another run of this query is active: query {query}, run {by} has taken over from run "
            f"{run}. Two queries must not share one checkpoint; stop one of them."
        )

    def __reduce__(self) -> tuple[type[Superseded], tuple[str, str, str]]:
        return Superseded, self.about


class AlreadyPast(Exception):
    """The batch is older than the last one decided."""

    def __init__(self, query: str, batch: int, decided: int) -> None:
        self.about = (query, batch, decided)
        super().__init__(
            f"query {query} runs batch {batch}, and its sink has decided batch {decided} already: "
            "the checkpoint was set back, or another run of this query was active. To write these "
            "batches again, begin with a new checkpoint."
        )

    def __reduce__(self) -> tuple[type[AlreadyPast], tuple[str, int, int]]:
        return AlreadyPast, self.about


class DecidedTwice(Exception):
    """One run would decide a batch of a sink again, with other transactions."""

    def __init__(self, sink: str, batch: int) -> None:
        self.about = (sink, batch)
        super().__init__(
            f"sink {sink} has written batch {batch} already: two writes of one batch need names of "
            "their own (option ottla.sink)"
        )

    def __reduce__(self) -> tuple[type[DecidedTwice], tuple[str, int]]:
        return DecidedTwice, self.about


class JobEnded(Exception):
    """A task of a batch job comes too late."""

    def __init__(self, job: str) -> None:
        self.about = (job,)
        super().__init__(
            f"{job} has ended without this task: another attempt was quicker, another task failed, "
            "or somebody ended it by command. What the task has written is not part of it."
        )

    def __reduce__(self) -> tuple[type[JobEnded], tuple[str]]:
        return JobEnded, self.about


class Sink(NamedTuple):
    """One sink of one query: what a ledger entry is about."""

    query: str
    name: str = "0"

    @property
    def fence(self) -> str:
        """The transactional id under which decisions are written; whoever has it last, decides."""
        return f"{self.query}-{self.name}"

    @property
    def group(self) -> str:
        """The group whose offset points to the entry, so that nobody has to search for it."""
        return f"ottla-sink-{self.fence}"

    @property
    def key(self) -> bytes:
        return json.dumps([self.query, self.name]).encode()

    def transactional_id(self, run_epoch: int, partition: int, attempt: str, again: int = 0) -> str:
        """What one attempt of one task writes under. No two attempts of a batch share it."""
        return f"{self.fence}-{run_epoch}-{partition}-{attempt}" + (f"x{again}" if again else "")

    def run_epoch(self, transactional_id: str) -> int | None:
        """The run that an id of this sink belongs to; None if it is not one."""
        prefix, _, rest = transactional_id.partition(f"{self.fence}-")
        numbers = rest.split("-")
        if prefix or len(numbers) != 3 or not numbers[0].isdigit():
            return None
        return int(numbers[0])


@dataclass(frozen=True)
class Entry:
    """What the ledger says of a sink."""

    run: str
    run_epoch: int
    batch: int = NO_BATCH
    transactions: tuple[PreparedTransaction, ...] = ()
    past: tuple[str, ...] = ()
    has_decided: bool = False
    """Whether the list is this run's own, and not yet one that it found."""

    def is_decided(self, batch: int) -> bool:
        return self.batch == batch

    @property
    def is_ended(self) -> bool:
        """Whether somebody ended the query by command, or the driver of a batch write gave up."""
        return self.run.startswith(BY_COMMAND)


def job_name(number: int) -> str:
    """What a batch write is called; it has no query whose name it could have."""
    return f"{JOB}{number}"


def job_of(transactional_id: str) -> str | None:
    """The batch write that a transaction belongs to; None if it belongs to none."""
    number, _, _ = transactional_id.removeprefix(JOB).partition("-")
    job = f"{JOB}{number}"
    is_ours = number.isdigit() and Sink(job).run_epoch(transactional_id) is not None
    return job if is_ours else None


def taken_over(sink: Sink, entry: Entry | None, run: str) -> Entry:
    """The entry of a run that begins; the same entry where it has begun already."""
    if entry is None:
        return Entry(run, FIRST_RUN_EPOCH)
    if entry.run == run:
        return entry
    if run in entry.past:
        raise Superseded(sink.query, run, entry.run)
    return Entry(
        run,
        entry.run_epoch + 1,
        entry.batch,
        entry.transactions,
        (entry.run, *entry.past)[:REMEMBERED_RUNS],
    )


def check_turn(sink: Sink, entry: Entry, run: str, batch: int) -> None:
    """Whether this run may write, or decide, this batch."""
    if entry.run != run:
        raise Superseded(sink.query, run, entry.run)
    if batch < entry.batch:
        raise AlreadyPast(sink.query, batch, entry.batch)


def decided(sink: Sink, entry: Entry, batch: int, prepared: Iterable[PreparedTransaction]) -> Entry:
    """The entry that commits a batch; unchanged where it is a batch that was decided before."""
    listed = tuple(prepared)
    if not entry.is_decided(batch):
        return replace(entry, batch=batch, transactions=listed, has_decided=True)
    if entry.has_decided and listed != entry.transactions:
        raise DecidedTwice(sink.name, batch)
    return entry


def is_awaited(entry: Entry | None, run: str, batch: int, prepared: PreparedTransaction) -> bool:
    """Whether somebody will still end what a task of this run has prepared."""
    if entry is None or entry.run != run:
        return False
    return not entry.is_decided(batch) or prepared in entry.transactions


def owed_commits(entry: Entry) -> tuple[PreparedTransaction, ...]:
    """What must be committed before the entry may be written over: a predecessor's decision.

    A run's own is carried through before its batch ends.
    """
    return () if entry.has_decided else entry.transactions


def abandoned_ids(sink: Sink, entry: Entry, open_ids: Sequence[str], *, own: bool) -> list[str]:
    """Of the transactions that are open after the decided ones have ended, those of no future.

    `own` counts those of this run as well: once its batch is decided, not before. A name on the
    decided list may be among them: its transaction has ended, and another began under it.
    """
    newest = entry.run_epoch if own else entry.run_epoch - 1
    return [id for id in open_ids if (epoch := sink.run_epoch(id)) is not None and epoch <= newest]


def orphaned_ids(entry: Entry, prepared: Iterable[PreparedTransaction]) -> list[str]:
    """Of what a run had prepared when another took over, what nobody will ever decide.

    What is on the list has been decided, and is for whoever holds the ledger to end.
    """
    listed = {transaction.transactional_id for transaction in entry.transactions}
    return [
        transaction.transactional_id
        for transaction in prepared
        if transaction.transactional_id not in listed
    ]


def to_bytes(entry: Entry) -> bytes:
    """An entry as the topic keeps it; the format is described in docs/formats/sink-commits.md."""
    return json.dumps(
        {
            "format": FORMAT,
            "run": entry.run,
            "runEpoch": entry.run_epoch,
            "batch": entry.batch,
            "transactions": [list(transaction) for transaction in entry.transactions],
            "past": list(entry.past),
            "hasDecided": entry.has_decided,
        },
        separators=(",", ":"),
    ).encode()


def from_bytes(value: bytes) -> Entry:
    fields: dict[str, Any] = json.loads(value)
    if fields["format"] != FORMAT:
        raise ValueError(
            f"{TOPIC}: unsupported entry format {fields['format']}; supported: {FORMAT}"
        )
    return Entry(
        fields["run"],
        fields["runEpoch"],
        fields["batch"],
        tuple(PreparedTransaction(*transaction) for transaction in fields["transactions"]),
        tuple(fields["past"]),
        fields["hasDecided"],
    )

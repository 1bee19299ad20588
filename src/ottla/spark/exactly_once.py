"""The steps of an exactly-once sink, in their order.

Owns: the order of steps when a run starts, when a batch is decided or given up, and when an
operator ends what a query left behind. Never: decides (`commit_decisions`), nor stores a commit log
(`commit_log`): it is handed one.

    take_over   a task, before it writes: the run becomes the only one that may decide
    decide      the driver, when every task has prepared: the entry that is written is the commit
                point; all that follows can be done by anybody who comes later
    give_up     the driver, when the batch failed
    end         an operator, when nobody comes back; the driver of a batch job that failed
    begin, decide_job  the driver of a batch job: nobody had its name before, nobody needs it after
    join, stay  a task of a batch job, before it writes and when it has prepared: the job may have
                ended without it, and no later run comes to look for what it left

`Fenced` while an entry is being written says that somebody else holds the ledger now. It is then
read again, and says who: a later run, or another task of this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from enum import Enum
from typing import Final, Protocol

from ottla.client.errors import Fenced
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.spark.commit_decisions import (
    BY_COMMAND,
    Entry,
    JobEnded,
    Sink,
    Superseded,
    abandoned_ids,
    check_turn,
    decided,
    is_awaited,
    orphaned_ids,
    owed_commits,
    taken_over,
)

MAX_ROUNDS: Final = 100
"""How often acquiring the commit log is attempted while others acquire it too."""


class Step(Enum):
    """What a decision has come to: where a test lets the driver die."""

    FENCED = "fenced"
    DECIDED = "decided"
    ENDED = "ended"
    CLEANED = "cleaned"


class StepListener(Protocol):
    """Called when a decision reaches a step."""

    def reached(self, step: Step) -> None: ...


class NoStepListener:
    """A listener that does nothing."""

    def reached(self, step: Step) -> None:
        """Do nothing."""


class HeldLog(Protocol):
    """A commit log, while no other run can write it."""

    @property
    def entry(self) -> Entry | None: ...

    async def write(self, entry: Entry | None) -> None: ...


class CommitLog(Protocol):
    """The commit log of one sink, and the transactions in it."""

    @property
    def sink(self) -> Sink: ...

    async def read(self) -> Entry | None: ...

    def acquire(self, *, is_new: bool = False) -> AbstractAsyncContextManager[HeldLog]: ...

    async def commit(self, listed: Sequence[PreparedTransaction]) -> None: ...

    async def abort(self, ids: Sequence[str]) -> None: ...

    async def open_transactions(self) -> list[str]: ...


async def take_over(ledger: CommitLog, run: str) -> Entry:
    """Make this run the owner of the commit log; ends what an earlier run left."""
    entry = await ledger.read()
    if entry is not None and entry.run == run:
        return entry
    new_entry, is_new = await _write_takeover(ledger, run)
    if is_new:
        await _put_in_order(ledger, new_entry, own=False)
    return new_entry


async def decide(
    ledger: CommitLog,
    run: str,
    batch: int,
    prepared: Sequence[PreparedTransaction],
    watch: StepListener,
) -> None:
    """Commit a batch: all of it, now or by a later run."""
    entry = await _decide(ledger, run, batch, prepared, watch)
    watch.reached(Step.DECIDED)
    await ledger.commit(entry.transactions)
    watch.reached(Step.ENDED)
    await ledger.abort(
        abandoned_ids(ledger.sink, entry, await ledger.open_transactions(), own=True)
    )
    watch.reached(Step.CLEANED)


async def begin(ledger: CommitLog, job: str) -> None:
    """The first entry of a batch job. Its name is new: there is nothing to read or to end."""
    async with ledger.acquire(is_new=True) as held:
        await held.write(taken_over(ledger.sink, None, job))


async def decide_job(
    ledger: CommitLog, job: str, batch: int, prepared: Sequence[PreparedTransaction]
) -> None:
    """Commit a batch job and forget it, holding the commit log until all is done."""

    async def finish(held: HeldLog, entry: Entry) -> None:
        await _put_in_order(ledger, entry, own=True)
        with suppress(Fenced):  # an operator ends what has ended, and has the entry now
            await held.write(None)

    await _decide(ledger, job, batch, prepared, NoStepListener(), then=finish)


async def give_up(
    ledger: CommitLog, run: str, batch: int, prepared: Sequence[PreparedTransaction]
) -> None:
    """End a run whose batch failed: a decision of it that is still in progress must not happen.

    The failure may have come after the decision; then the batch is committed to its end.
    A run that has taken over may have ended already, and did not see what was prepared later.
    """
    entry = await ledger.read()
    if entry is not None and entry.run == run:
        try:
            new_entry, _ = await _write_takeover(
                ledger, f"{run}, given up at batch {batch}", after=run
            )
        except Superseded:
            entry = await ledger.read()
        else:
            await _put_in_order(ledger, new_entry, own=True)
            return
    if entry is not None:
        await ledger.abort(orphaned_ids(entry, prepared))


async def end(ledger: CommitLog) -> Entry | None:
    """End what a query left behind: commit what was decided, abort the rest; None: nothing.

    A run that is still alive can decide nothing afterwards.
    """
    entry = await ledger.read()
    if entry is None:
        return None
    name = entry.run if entry.is_ended else f"{BY_COMMAND} after {entry.run}"
    new_entry, _ = await _write_takeover(ledger, name)
    await _put_in_order(ledger, new_entry, own=True)
    return new_entry


async def join(ledger: CommitLog, job: str) -> Entry:
    """What a task of a batch job goes by; the job has taken its ledger over before."""
    entry = await ledger.read()
    if entry is None or entry.run != job:
        raise JobEnded(job)
    return entry


async def stay(ledger: CommitLog, job: str, batch: int, prepared: PreparedTransaction) -> None:
    """Abort what a task has prepared for a job that ended meanwhile.

    Who ends a job writes so before looking for open transactions, and a task is here when its own
    is open: one of the two sees the other.
    """
    if not is_awaited(await ledger.read(), job, batch, prepared):
        await ledger.abort([prepared.transactional_id])
        raise JobEnded(job)


async def _write_takeover(
    ledger: CommitLog, run: str, *, after: str | None = None
) -> tuple[Entry, bool]:
    """The entry with which `run` has taken over, and whether that was now.

    `after` names the run that must have owned the commit log until then.
    """
    for _ in range(MAX_ROUNDS):
        try:
            async with ledger.acquire() as held:
                entry = held.entry
                if after is not None and (entry is None or entry.run not in (after, run)):
                    raise Superseded(ledger.sink.query, after, entry.run if entry else "nobody")
                new_entry = taken_over(ledger.sink, entry, run)
                if new_entry is entry:
                    return new_entry, False
                await held.write(new_entry)
            return new_entry, True
        except Fenced:
            continue
    raise TimeoutError(
        f"cannot acquire the commit log of {ledger.sink.fence}: {MAX_ROUNDS} attempts were fenced"
    )


async def _decide(
    ledger: CommitLog,
    run: str,
    batch: int,
    prepared: Sequence[PreparedTransaction],
    watch: StepListener,
    *,
    then: Callable[[HeldLog, Entry], Awaitable[None]] | None = None,
) -> Entry:
    """The entry that commits a batch; `then` is done before the commit log is let go."""
    for _ in range(MAX_ROUNDS):
        try:
            async with ledger.acquire() as held_log:
                watch.reached(Step.FENCED)
                if held_log.entry is None:
                    raise Superseded(
                        ledger.sink.query, run, "an unknown run, as the commit log entry is gone"
                    )
                check_turn(ledger.sink, held_log.entry, run, batch)
                new_entry = decided(ledger.sink, held_log.entry, batch, prepared)
                if new_entry is not held_log.entry:
                    await ledger.commit(owed_commits(held_log.entry))
                    await held_log.write(new_entry)
                if then is not None:
                    await then(held_log, new_entry)
            return new_entry
        except Fenced:
            continue
    raise TimeoutError(
        f"cannot acquire the commit log of {ledger.sink.fence}: {MAX_ROUNDS} attempts were fenced"
    )


async def _put_in_order(ledger: CommitLog, entry: Entry, *, own: bool) -> None:
    await ledger.commit(entry.transactions)
    await ledger.abort(abandoned_ids(ledger.sink, entry, await ledger.open_transactions(), own=own))

"""The steps of an exactly-once sink, in their order.

Owns: what is done after what when a run begins, when a batch is decided, when it is given up, and
when an operator ends what a query left behind. Never: decides (`decisions`), nor knows how a
ledger is kept (`ledger`): it is handed one.

    take_over   a task, before it writes: the run becomes the only one that may decide
    decide      the driver, when every task has prepared: the entry that is written is the commit
                point; all that follows can be done by anybody who comes later
    give_up     the driver, when the batch failed
    end         an operator, when nobody comes back; the driver of a batch job that failed
    join, stay  a task of a batch job, before it writes and when it has prepared: the job may have
                ended without it, and no later run comes to look for what it left

`Fenced` while an entry is being written says that somebody else holds the ledger now. It is then
read again, and says who: a later run, or another task of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
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
    abandoned,
    check_turn,
    decided,
    is_awaited,
    orphaned,
    owed,
    taken_over,
)

MAX_ROUNDS: Final = 100
"""How often the ledger is tried to be held, while others want it too."""


class Step(Enum):
    """What a decision has come to: where a test lets the driver die."""

    FENCED = "fenced"
    DECIDED = "decided"
    ENDED = "ended"
    CLEANED = "cleaned"


class StepListener(Protocol):
    """Somebody who is told how far a decision has come."""

    def reached(self, step: Step) -> None: ...


class NoStepListener:
    """Nobody."""

    def reached(self, step: Step) -> None:
        """Say nothing."""


class HeldLog(Protocol):
    """A ledger, while nobody else may write it."""

    @property
    def entry(self) -> Entry | None: ...

    async def write(self, entry: Entry) -> None: ...


class CommitLog(Protocol):
    """The book of one sink, and the transactions it is about."""

    @property
    def sink(self) -> Sink: ...

    async def read(self) -> Entry | None: ...

    def acquire(self) -> AbstractAsyncContextManager[HeldLog]: ...

    async def commit(self, listed: Sequence[PreparedTransaction]) -> None: ...

    async def abort(self, ids: Sequence[str]) -> None: ...

    async def open_transactions(self) -> list[str]: ...


async def take_over(ledger: CommitLog, run: str) -> Entry:
    """See to it that this run holds the ledger; what an earlier one left is put in order."""
    known = await ledger.read()
    if known is not None and known.run == run:
        return known
    made, is_new = await _write_takeover(ledger, run)
    if is_new:
        await _put_in_order(ledger, made, own=False)
    return made


async def decide(
    ledger: CommitLog,
    run: str,
    batch: int,
    prepared: Sequence[PreparedTransaction],
    watch: StepListener,
) -> None:
    """Commit a batch: all of it, now or by whoever comes later."""
    entry = await _decided(ledger, run, batch, prepared, watch)
    watch.reached(Step.DECIDED)
    await ledger.commit(entry.transactions)
    watch.reached(Step.ENDED)
    await ledger.abort(abandoned(ledger.sink, entry, await ledger.open_transactions(), own=True))
    watch.reached(Step.CLEANED)


async def give_up(
    ledger: CommitLog, run: str, batch: int, prepared: Sequence[PreparedTransaction]
) -> None:
    """End a run whose batch failed: a decision of it that is still under way must not be made.

    The failure may have come after the decision; then the batch stands, and is carried through.
    Who has taken over may be gone again, and did not see what was prepared afterwards.
    """
    known = await ledger.read()
    if known is not None and known.run == run:
        try:
            made, _ = await _write_takeover(ledger, f"{run}, given up at batch {batch}", after=run)
        except Superseded:
            known = await ledger.read()
        else:
            await _put_in_order(ledger, made, own=True)
            return
    if known is not None:
        await ledger.abort(orphaned(known, prepared))


async def end(ledger: CommitLog) -> Entry | None:
    """End what a query left behind: commit what was decided, abort the rest; None: nothing.

    A run that is still alive can decide nothing afterwards.
    """
    known = await ledger.read()
    if known is None:
        return None
    name = known.run if known.is_ended else f"{BY_COMMAND} after {known.run}"
    made, _ = await _write_takeover(ledger, name)
    await _put_in_order(ledger, made, own=True)
    return made


async def join(ledger: CommitLog, job: str) -> Entry:
    """What a task of a batch job goes by; the job has taken its ledger over before."""
    known = await ledger.read()
    if known is None or known.run != job:
        raise JobEnded(job)
    return known


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

    `after` names who must have held the ledger until then.
    """
    for _ in range(MAX_ROUNDS):
        try:
            async with ledger.acquire() as held:
                found = held.entry
                if after is not None and (found is None or found.run not in (after, run)):
                    raise Superseded(ledger.sink.query, after, found.run if found else "nobody")
                made = taken_over(ledger.sink, found, run)
                if made is found:
                    return made, False
                await held.write(made)
            return made, True
        except Fenced:
            continue
    raise TimeoutError(
        f"cannot acquire the commit log of {ledger.sink.fence}: {MAX_ROUNDS} attempts were fenced"
    )


async def _decided(
    ledger: CommitLog,
    run: str,
    batch: int,
    prepared: Sequence[PreparedTransaction],
    watch: StepListener,
) -> Entry:
    for _ in range(MAX_ROUNDS):
        try:
            async with ledger.acquire() as held:
                watch.reached(Step.FENCED)
                if held.entry is None:
                    raise Superseded(
                        ledger.sink.query, run, "an unknown run, as the commit log entry is gone"
                    )
                check_turn(ledger.sink, held.entry, run, batch)
                made = decided(ledger.sink, held.entry, batch, prepared)
                if made is not held.entry:
                    await ledger.commit(owed(held.entry))
                    await held.write(made)
            return made
        except Fenced:
            continue
    raise TimeoutError(
        f"cannot acquire the commit log of {ledger.sink.fence}: {MAX_ROUNDS} attempts were fenced"
    )


async def _put_in_order(ledger: CommitLog, entry: Entry, *, own: bool) -> None:
    await ledger.commit(entry.transactions)
    await ledger.abort(abandoned(ledger.sink, entry, await ledger.open_transactions(), own=own))

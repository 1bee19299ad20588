"""Every promise a history can show to be broken, and the judgement of one.

Owns the list; each promise is a function in the module of its concern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ottla.testing.history import groups, records, replicas, transactions
from ottla.testing.history.arrangement import History
from ottla.testing.history.events import Event
from ottla.testing.history.transactions import Broken


class Violation(NamedTuple):
    invariant: str
    partition: str
    detail: str


OfPartition: TypeAlias = Callable[[History, str], Iterator[str]]
OfHistory: TypeAlias = Callable[[History], Iterator[Broken]]

OF_PARTITIONS: Final[tuple[OfPartition, ...]] = (
    records.inconsistent_offset,
    records.lost_write,
    records.unseen_values,
    records.compaction,
    records.duplicate,
    records.phantom,
    records.poll_order,
    records.send_order,
    records.high_watermark,
)
OF_HISTORIES: Final[tuple[OfHistory, ...]] = (
    transactions.aborted_read,
    transactions.torn_transaction,
    transactions.zombie,
    transactions.stuck_lso,
    groups.one_reader,
    groups.one_owner,
    groups.stale_commit,
    groups.offset_regression,
    groups.exactly_once,
    replicas.one_leader,
    replicas.watermark_of_leaders,
    replicas.complete_leaders,
)
INVARIANTS: Final = tuple(one.__name__ for one in (*OF_PARTITIONS, *OF_HISTORIES))


def check(events: Iterable[Event]) -> list[Violation]:
    """Every broken promise in a history."""
    history = History(events)
    violations = [
        Violation(invariant.__name__, partition, detail)
        for partition in history.partitions()
        for invariant in OF_PARTITIONS
        for detail in invariant(history, partition)
    ]
    for promise in OF_HISTORIES:
        violations += [Violation(promise.__name__, *broken) for broken in promise(history)]
    return violations

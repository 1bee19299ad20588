"""What compaction must know about transactions, as it walks a log from its start.

Owns: which transactions are open at the place the walk has reached, how each of them ended, and
whether any of their data has been seen.
Never: reads a record or a file.

Data of an aborted transaction may go at once. A marker may go only when nothing of its
transaction is left, because a reader that meets the data without the marker would wait, or would
take aborted records for good ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.log.index.txn_index import AbortedTxn
from ottla.model.ids import Offset


class TransactionTracker:
    """Feed it every transactional data batch and every marker, in order."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = deque(sorted(set(aborted), key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        self._with_data: set[int] = set()
        self._kept: list[AbortedTxn] = []

    def data(self, producer_id: int, last_offset: Offset) -> bool:
        """A transactional data batch; whether it belongs to an aborted transaction."""
        self._advance(last_offset)
        self._with_data.add(producer_id)
        return producer_id in self._aborted

    def marker(self, producer_id: int, offset: Offset, *, commit: bool) -> bool:
        """The end of a transaction; whether none of its data was met, so that this may go too.

        An aborted transaction that still has data keeps its line in the transaction index.
        """
        self._advance(offset)
        aborted = None if commit else self._aborted.pop(producer_id, None)
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        if aborted is not None and had_data:
            self._kept.append(aborted)
        return not had_data

    def take_kept(self) -> list[AbortedTxn]:
        """The aborted transactions with data whose markers were met since the last call."""
        kept, self._kept = self._kept, []
        return kept

    def _advance(self, offset: Offset) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            txn = self._coming.popleft()
            self._aborted.setdefault(txn.producer_id, txn)

"""The interface between the runtime and the state of one partition of an internal topic.

A shard is synchronous and used by one event loop only. `replay` is the only writer of persisted
state; a decision may change state that is lost with the process (waiting replies, running timers).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from ottla.coordinator.outcome import Change, Effect, Outcome
from ottla.model.clock import WallMs
from ottla.model.ids import Offset, ProducerId


class Shard(Protocol):
    def decode(self, key: bytes, value: bytes | None) -> Change | None:
        """The record's typed value, for `replay`; None for an unknown kind of record.

        ValueError where the bytes are malformed.
        """

    def replay(self, change: Change, offset: Offset, producer_id: ProducerId) -> None:
        """Apply a record of the log to the state; the producer is -1 outside transactions."""

    def replay_many(
        self, section: bytes, position: int, most: int, base_offset: Offset, /
    ) -> tuple[int, int]:
        """Decode and replay a run of records, from `position` in a batch's uncompressed records.

        Returns the next position and the number replayed: 0 if the next record needs `decode`.
        """

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """The log has a transaction marker for this producer."""

    def on_loaded(self, now: WallMs) -> Outcome[None]:
        """The log has been replayed: requests follow."""

    def on_unloaded(self) -> Sequence[Effect]:
        """This broker no longer leads the partition: the answers to waiting requests."""

    def on_timer(self, key: Hashable, now: WallMs) -> Outcome[None]:
        """A timer of this shard expired."""

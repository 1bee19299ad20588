"""What the runtime asks of the state of one partition of an internal topic.

A shard is synchronous and alone on its loop. `replay` is the only writer of what is persisted;
what is lost with the process (who waits for a reply, which timers run) it may change while it
decides.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from ottla.coordinator.outcome import Outcome
from ottla.model.ids import Offset, ProducerId


class Shard(Protocol):
    def decode(self, key: bytes, value: bytes | None) -> Any | None:
        """A record as `replay` takes it; None for one this release does not know.

        ValueError where the bytes are not what they should be.
        """

    def replay(self, what: Any, offset: Offset, producer_id: ProducerId) -> None:
        """Take in a record that stands in the log; the producer is -1 outside transactions."""

    def replay_many(
        self, section: bytes, at: int, most: int, base_offset: Offset, /
    ) -> tuple[int, int]:
        """Decode and replay at once what can be, from `at` on in a batch's inflated records.

        Up to where, and how many: none, where the next record is one to `decode`.
        """

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """A marker for this producer stands in the log."""

    def loaded(self, now: int) -> Outcome[None]:
        """Everything in the log has been replayed: requests may come."""

    def unloaded(self) -> None:
        """Led elsewhere now: answer whoever waits."""

    def on_timer(self, key: Hashable, now: int) -> Outcome[None]:
        """A timer this shard has set ran out."""

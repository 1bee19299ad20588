"""Which leader epoch began at which offset: the `leader-epoch-checkpoint` file and its cache.

Owns the history of one partition's leaders as its log shows it. Followers truncate by it, never
by the high watermark. Never reads batches: appending and recovery call `assign`.

Changes are kept in memory and written by the next flush or close; until then they can be derived
again, because recovery walks every batch above the recovery point. An epoch under which nothing
was written yet is not saved: it says nothing about the log, and a broker that leads ten thousand
idle partitions would write as many files at every start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.directories import checkpoint_file
from ottla.log.directories.checkpoint_file import BadCheckpoint
from ottla.log.files import Disk
from ottla.model.ids import NO_EPOCH, LeaderEpoch, Offset

FILE_NAME: Final = "leader-epoch-checkpoint"


class EpochStart(NamedTuple):
    """A leader epoch and the offset of the first batch written under it."""

    epoch: int
    start_offset: Offset


class LeaderEpochs:
    """Epochs with where they start; both rise."""

    __slots__ = ("_epochs", "_is_saved", "_saved", "_starts", "latest")

    def __init__(self, entries: Sequence[EpochStart] = (), *, saved: bool = True) -> None:
        self._epochs: list[int] = []
        self._starts: list[Offset] = []
        self.latest: LeaderEpoch = NO_EPOCH
        self._is_saved = False
        """Known to be, so that the next flush need not compare."""
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)
        self._saved: tuple[EpochStart, ...] | None = tuple(entries) if saved else None

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def entries(self) -> list[EpochStart]:
        return [EpochStart(*pair) for pair in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: Offset) -> None:
        """An epoch begins. Entries it contradicts (as high, or starting as late) are dropped."""
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return
        self._is_saved = False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest = LeaderEpoch(epoch)

    def end_offset(self, epoch: int, log_end: Offset) -> tuple[LeaderEpoch, Offset]:
        """The largest epoch known that is not above `epoch`, and where it stopped writing.

        (NO_EPOCH, -1) where the question cannot be answered: no history, or an epoch newer than
        all of it. An epoch older than all of it ended where the history begins.
        """
        if not self._epochs or epoch > self._epochs[-1] or epoch < 0:
            return NO_EPOCH, -1
        at = bisect_right(self._epochs, epoch)
        if at == 0:
            return LeaderEpoch(epoch), self._starts[0]
        end = self._starts[at] if at < len(self._starts) else log_end
        return LeaderEpoch(self._epochs[at - 1]), end

    def epoch_of(self, offset: Offset) -> LeaderEpoch:
        """The epoch under which an offset was written; NO_EPOCH if the history does not reach."""
        at = bisect_right(self._starts, offset)
        return LeaderEpoch(self._epochs[at - 1]) if at else NO_EPOCH

    def truncate_from_end(self, end_offset: Offset) -> None:
        """The log now ends here: epochs that start at or after it never wrote anything."""
        self._is_saved = False
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        self.latest = LeaderEpoch(self._epochs[-1]) if self._epochs else NO_EPOCH

    def truncate_from_start(self, start_offset: Offset) -> None:
        """The log now starts here: the epoch of its first offset starts there too."""
        at = bisect_right(self._starts, start_offset)
        if at == 0 or (at == 1 and self._starts[0] == start_offset):
            return
        self._is_saved = False
        del self._epochs[: at - 1], self._starts[: at - 1]
        self._starts[0] = start_offset

    def clear(self) -> None:
        self._is_saved = False
        self._epochs.clear()
        self._starts.clear()
        self.latest = NO_EPOCH

    def to_save(self, log_end: Offset) -> bytes | None:
        """The file's new content, taken as saved from here on; None if the file has it."""
        if self._is_saved:
            return None
        wrote = tuple(entry for entry in self.entries if entry.start_offset < log_end)
        if self._saved is None and log_end == 0:
            return None
        self._is_saved = len(wrote) == len(self._epochs)  # the last may not have written yet
        if wrote == self._saved:
            return None
        self._saved = wrote
        return checkpoint_file.encode([f"{epoch} {start}" for epoch, start in wrote])

    def not_saved(self) -> None:
        """What `to_save` gave could not be written: give it again."""
        self._is_saved, self._saved = False, None


def decode(content: bytes) -> LeaderEpochs:
    """BadCheckpoint unless every line is whole and both columns rise."""
    entries = [
        EpochStart(checkpoint_file.number(epoch), checkpoint_file.number(start))
        for epoch, start in checkpoint_file.decode(content, fields=2)
    ]
    history = LeaderEpochs(entries)
    if history.entries != entries:
        raise BadCheckpoint("leader epochs or offsets are not ascending")
    return history


def read(disk: Disk, dir: Path) -> LeaderEpochs:
    """BadCheckpoint where the file is not what was written."""
    return decode(disk.read(dir / FILE_NAME))

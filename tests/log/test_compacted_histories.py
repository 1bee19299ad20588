"""Random lives of a compacted log, cut short at any moment, against a plain model of what it holds.

The model is the list of what was written and how each transaction ended. Whatever happens, a
reader of committed records ends up with the same state as one who had seen all of it; nothing
flushed is lost, nothing deleted comes back, and no offset changes what it holds.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ottla.log.compaction.cleaner import CleanerMemory, SegmentSwap
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation, load
from ottla.model.clock import WallMs
from ottla.protocol.records.control import ControlType
from tests.fakes.power_cut_disk import FusedDisk, PowerCut
from tests.log.compacted_log import FOLDER, HOUR, Compacted, latest

KEYS = (b"a", b"b", b"c", b"d")


class Event(NamedTuple):
    """A record, or with `ends` the end of its producer's transaction."""

    offset: int
    producer: int
    key: bytes = b""
    value: bytes | None = None
    ends: ControlType | None = None


class CompactedLife(RuleBasedStateMachine):
    """One compacted partition from its creation on."""

    @initialize(
        segment_bytes=st.sampled_from(["300", "1000"]), interval=st.sampled_from(["0", "4096"])
    )
    def begin(self, segment_bytes: str, interval: str) -> None:
        self.disk = FusedDisk()
        self.disk.mkdir(FOLDER)
        self.compacted = Compacted(
            FOLDER,
            self.disk,
            internal_segment_bytes=segment_bytes,
            index_interval_bytes=interval,
        )
        self.compacted.log.flush()
        self.disk.sync_everything()
        self.events: list[Event] = []
        self.serial = 0
        self.flushed = 0
        self.recovery_point = 0  # as the checkpoint file has it

    # What a broker does

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3),
        producer=st.integers(-1, 1),
        deletes=st.booleans(),
    )
    def put(self, keys: list[bytes], producer: int, deletes: bool) -> None:
        offset = self.compacted.log.end_offset
        records: list[tuple[bytes, bytes | None]] = []
        for key in keys:
            self.serial += 1
            records.append((key, None if deletes else b"%d" % self.serial))
        self.compacted.put(*records, producer=producer)
        self.events += [
            Event(offset + at, producer, key, value) for at, (key, value) in enumerate(records)
        ]

    @precondition(lambda self: self.open_producers())
    @rule(kind=st.sampled_from(list(ControlType)), choice=st.integers(0, 5))
    def end_transaction(self, kind: ControlType, choice: int) -> None:
        open_ = self.open_producers()
        producer = open_[choice % len(open_)]
        self.events.append(Event(self.compacted.log.end_offset, producer, ends=kind))
        self.compacted.end(producer, kind)

    @rule()
    def roll(self) -> None:
        self.compacted.roll()

    @rule(pause_ms=st.integers(1, HOUR))
    def wait(self, pause_ms: int) -> None:
        self.compacted.now_ms = WallMs(self.compacted.now_ms + pause_ms)

    @rule()
    def flush(self) -> None:
        self.flushed = max(self.flushed, self.compacted.log.flush())

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.compacted.log.recovery_point

    @rule(slots=st.integers(4, 12), again=st.booleans())
    def clean(self, slots: int, again: bool) -> None:
        if again:
            self.compacted.cleaned_to = None
        self.compacted.roll()
        self.compacted.clean(CleanerMemory(buffer_bytes=24 * slots))
        self.check()

    # What happens to it

    @rule(fuse=st.integers(0, 60), seed=st.none() | st.integers(0, 2**32))
    def clean_and_be_cut_short(self, fuse: int, seed: int | None) -> None:
        self.compacted.roll()
        cleaning = self.compacted.cleaning()
        self.disk.fuse = fuse
        with suppress(PowerCut):
            for step in cleaning.steps():
                if isinstance(step, SegmentSwap):
                    step.perform(WallMs(self.compacted.now_ms))
                    self.flushed = max(self.flushed, self.compacted.log.recovery_point)
        self.disk.fuse = None
        self.restart(seed)

    @rule()
    def kill(self) -> None:
        end = self.compacted.log.end_offset
        self.restart(None)
        assert self.compacted.log.end_offset == end

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        self.restart(seed)

    def restart(self, seed: int | None) -> None:
        """With the power lost, as the seed says, or only the process."""
        if seed is None:
            self.disk.kill()
        else:
            self.disk.crash(seed)
        old = self.compacted.log
        known = CheckpointedState(clean=False, recovery_point=self.recovery_point)
        place = LogLocation(self.disk, Random(1), WallMs(self.compacted.now_ms))
        log = load(old.partition, FOLDER, old.config, place, known)
        log.raise_high_watermark(log.end_offset)
        self.compacted.log = log
        assert log.end_offset >= self.flushed, "flushed records are gone"
        # Of what was not flushed anything may be lost, and compaction has not been there.
        left = {
            n for b, _ in self.compacted.batches() for n in range(b.base_offset, b.last_offset + 1)
        }
        self.events = [e for e in self.events if e.offset < self.flushed or e.offset in left]
        self.flushed = log.end_offset  # what is served was flushed
        if self.compacted.cleaned_to is not None and self.compacted.cleaned_to > log.end_offset:
            self.compacted.cleaned_to = None
        self.check()

    # What must hold

    def check(self) -> None:
        compacted = self.compacted
        written = {
            event.offset: (event.key, event.value) for event in self.events if not event.ends
        }
        for record in compacted.records():
            assert written[record.offset] == (record.key, record.value)
        assert latest(compacted.committed()) == self.expected()
        assert compacted.log.last_stable_offset == self.stable_offset()

    def expected(self) -> dict[bytes, bytes]:
        state: dict[bytes, bytes] = {}
        for event in self.events:
            if event.ends is not None or event.offset >= self.stable_offset():
                continue
            if event.producer >= 0 and self.outcome(event) is ControlType.ABORT:
                continue
            if event.value is None:
                state.pop(event.key, None)
            else:
                state[event.key] = event.value
        return state

    def outcome(self, record: Event) -> ControlType | None:
        """How the transaction of a record ended."""
        ends = (
            event.ends
            for event in self.events
            if event.ends is not None
            and event.producer == record.producer
            and event.offset > record.offset
        )
        return next(ends, None)

    def open_producers(self) -> list[int]:
        return sorted({event.producer for event in self.open_events()})

    def open_events(self) -> list[Event]:
        return [
            event
            for event in self.events
            if event.producer >= 0 and event.ends is None and self.outcome(event) is None
        ]

    def stable_offset(self) -> int:
        first = (event.offset for event in self.open_events())
        return min(first, default=self.compacted.log.end_offset)


@pytest.mark.parametrize("seed", range(11_400, 11_440))
def test_what_was_cut_does_not_come_back_when_the_power_is_lost_again(seed: int) -> None:
    """The cut leaves its segment empty, and half of the end of a transaction stood there before."""
    life = CompactedLife()
    life.begin(segment_bytes="300", interval="0")
    for _ in range(2):
        life.put(deletes=False, keys=[b"a"], producer=0)
        life.clean(again=False, slots=4)
        life.end_transaction(choice=0, kind=ControlType.ABORT)
    life.lose_power(seed=11_255)
    assert life.compacted.log.last_stable_offset == 2
    life.put(deletes=False, keys=[b"a", b"a"], producer=0)
    life.lose_power(seed)
    assert life.compacted.log.last_stable_offset == 2


CompactedLife.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestCompactedLife = pytest.mark.spec("LOG-67", "LOG-71", "LOG-72", "LOG-74")(CompactedLife.TestCase)

"""Random lives of a log, crashes included, against a plain model of what it promised.

The model is a list of batches and the offset up to which they were flushed. Nothing flushed is
lost, nothing torn is served, and no offset ever shows two values that were both readable at once.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.log.flush import begin_flush
from ottla.log.log import Log
from ottla.log.segment_deletion import delete_old_segments
from ottla.log.stored_batch import walk_whole
from ottla.log.timestamp_lookup import offset_for_timestamp
from ottla.protocol.records.batch import crc_ok
from ottla.protocol.records.record import read_records
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import DIR, NOW_MS, Workbench, batch

PRODUCER = 7


class Written(NamedTuple):
    base: int
    last: int
    epoch: int
    timestamp: int
    value: bytes  # unique to the batch
    last_sequence: int


class LogLife(RuleBasedStateMachine):
    """One partition from its creation on."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Written] = []  # every batch ever written, truncated ones too
        self.model: list[Written] = []  # what the log holds
        self.flushed = 0
        self.recovery_point = 0  # as the checkpoint file has it
        self.start = 0
        self.epoch = 0
        self.producer_epoch = 0
        self.serial = 0

    @initialize(
        segment_bytes=st.sampled_from([500, 900, 4_000]),
        interval=st.sampled_from([0, 150, 4_096]),
        index_bytes=st.sampled_from([24, 48, 10_000]),
    )
    def begin(self, segment_bytes: int, interval: int, index_bytes: int) -> None:
        self.disk = ForgettingDisk(lambda: NOW_MS)
        self.bench = Workbench(
            self.disk,
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
        )
        self.log: Log = self.bench.create()
        self.log.flush()

    # What a broker does

    @rule(count=st.integers(1, 4), size=st.integers(0, 60), back=st.integers(0, 50))
    def append(self, count: int, size: int, back: int) -> None:
        self.serial += 1
        value = b"%d:" % self.serial + b"x" * size
        state = self.log.producers.get(PRODUCER)  # it outlives the batches it was learnt from
        if state is None and self.history:
            self.producer_epoch += 1  # nobody knows it any more: a client begins anew, as another
        sequence = 0
        if state is not None and state.epoch == self.producer_epoch:
            sequence = state.last_sequence + 1
        stamp, end = NOW_MS - back * 10_000 + self.serial, self.log.end_offset
        content = batch(
            *[value] * count,
            timestamp=stamp,
            producer_id=PRODUCER,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
        )
        appended = self.log.append(content, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert appended.first_offset == (self.model[-1].last + 1 if self.model else end)
        written = Written(
            appended.first_offset,
            appended.last_offset,
            self.epoch,
            stamp,
            value,
            sequence + count - 1,
        )
        self.history.append(written)
        self.model.append(written)
        again = self.log.append(content, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert again.duplicate
        assert again.first_offset == appended.first_offset

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.end_offset)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.flushed = max(self.flushed, self.log.flush())

    @rule(count=st.integers(1, 3))
    def flush_while_appending(self, count: int) -> None:
        flush = begin_flush(self.log)
        self.append(count, 5, 0)
        flush.run()
        self.log.flush_done(flush)
        self.flushed = max(self.flushed, flush.upto)

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.log.recovery_point

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        low = self.log.segments.first.base_offset
        offset = data.draw(st.integers(max(low, self.start), self.log.end_offset))
        self.log.truncate_to(offset)
        self.model = [written for written in self.model if written.last < offset]
        self.flushed = min(self.flushed, self.log.end_offset)
        self.recovery_point = min(self.recovery_point, self.log.end_offset)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.log.raise_high_watermark(self.log.end_offset)
        target = data.draw(st.sampled_from([written.base for written in self.model]))
        self.log.raise_start_offset(target)
        self.start = self.log.start_offset
        delete_old_segments(self.log, NOW_MS)
        first = self.log.segments.first.base_offset
        self.model = [written for written in self.model if written.base >= first]

    # What happens to it

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.log = self.bench.load(clean=True, start_offset=self.start)
        self.recovery_point = self.flushed = self.log.recovery_point
        assert self.held() == self.model

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.reload()
        assert self.held() == self.model

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        self.disk.crash(seed)
        self.reload()
        held = self.held()
        flushed = [w for w in self.model if self.start <= w.last < self.flushed]
        served = [written for written in held if written.last >= self.start]
        assert served[: len(flushed)] == flushed, "a flushed batch is gone"
        assert all(written in self.history for written in held), "a batch nobody wrote"
        self.model = held

    @rule(seed=st.integers(0, 2**32), second=st.integers(0, 2**32))
    def lose_power_twice(self, seed: int, second: int) -> None:
        self.lose_power(seed)
        self.flushed = self.log.end_offset  # what was recovered is durable before it is served
        self.lose_power(second)

    @rule(data=st.data())
    def rot_what_is_derived(self, data: st.DataObject) -> None:
        """After a clean stop, damage one file that is not a log."""
        self.log.close()
        victims = [name for name in self.bench.names() if not name.endswith((".log", ".metadata"))]
        if victims:
            name = data.draw(st.sampled_from(victims))
            size = self.disk.file_size(DIR / name)
            text = name == "leader-epoch-checkpoint"  # a digit that changed is still a digit
            damage = data.draw(st.sampled_from(["remove", "shorten", *([] if text else ["flip"])]))
            if damage == "remove":
                self.disk.remove(DIR / name)
            elif damage == "shorten" and size:
                # By less than an entry: a time index cut between two would be a true, older one.
                less = data.draw(st.integers(1, min(7, size)))
                self.disk.open_append(DIR / name).truncate(size - less)
            elif size:
                self.bench.flip(
                    name, data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7))
                )
        self.log = self.bench.load(clean=True, start_offset=self.start)
        self.recovery_point = self.flushed = self.log.recovery_point
        assert self.held() == self.model

    def reload(self) -> None:
        self.log = self.bench.load(
            clean=False, recovery_point=self.recovery_point, start_offset=self.start
        )

    # What must hold

    @invariant()
    def every_offset_can_be_read(self) -> None:
        for written in self.model:
            for offset in {written.base, written.last}:
                if offset < self.log.start_offset:
                    continue
                read = self.log.read(offset, 1, end=self.log.end_offset, min_one=True)
                assert read.slice is not None
                content = read.slice.read()
                assert crc_ok(content)
                assert next(read_records(content)).value == written.value

    @invariant()
    def times_are_found(self) -> None:
        for stamp in {written.timestamp for written in self.model}:
            first = next(
                (w for w in self.model if w.timestamp >= stamp and w.last >= self.log.start_offset),
                None,
            )
            found = offset_for_timestamp(self.log, stamp)
            if first is None:
                assert found is None
            else:
                assert found is not None
                assert found.offset == max(first.base, self.log.start_offset)

    @invariant()
    def the_last_sequence_is_known(self) -> None:
        if self.model:
            state = self.log.producers.get(PRODUCER)
            assert state is not None
            assert state.last_sequence == self.model[-1].last_sequence

    @invariant()
    def epochs_agree_with_the_batches(self) -> None:
        for written in self.model:
            if written.base >= self.log.start_offset:
                assert self.log.epochs.epoch_of(written.base) == written.epoch

    @invariant()
    def marks_are_in_order(self) -> None:
        log = self.log
        assert log.start_offset <= log.high_watermark <= log.end_offset
        assert log.recovery_point <= log.end_offset

    def held(self) -> list[Written]:
        found: list[Written] = []
        for segment in self.log.segments:
            for stored, content in walk_whole(segment.file(), 0, segment.size):
                assert crc_ok(content), "a torn batch is served"
                header = stored.header
                assert header is not None
                record = next(read_records(content))
                found.append(
                    Written(
                        stored.base_offset,
                        stored.last_offset,
                        stored.leader_epoch,
                        record.timestamp,
                        record.value or b"",
                        header.last_sequence,
                    )
                )
        return found


LogLife.TestCase.settings = settings(max_examples=500, stateful_step_count=30)
TestLogLife = LogLife.TestCase

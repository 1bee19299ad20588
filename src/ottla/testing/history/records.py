"""What holds for the records of one partition, whoever wrote and read them.

One function for each promise; each yields what it found broken, in words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ottla.testing.history.arrangement import Fate, History
from ottla.testing.history.events import Outcome, Retention, Send


def inconsistent_offset(history: History, partition: str) -> Iterator[str]:
    """An offset that ever showed two values, to a reader or in an acknowledgement."""
    values: dict[int, set[str]] = defaultdict(set)
    for offset, value in history.records_read(partition):
        values[offset].add(value)
    for send in history.sends[partition]:
        if send.outcome is Outcome.OK and send.offset >= 0:
            values[send.offset].add(send.value)
    for offset, values_seen in sorted(values.items()):
        if len(values_seen) > 1:
            yield f"offset {offset} showed {sorted(values_seen)}"


def lost_write(history: History, partition: str) -> Iterator[str]:
    """Acknowledged, never read, though something later was."""
    records = dict(history.records_read(partition))
    highest = max(records, default=-1)
    values_seen = set(records.values())
    for send in history.durable_sends(partition):
        if send.value not in values_seen and send.offset < highest:
            yield f"{send.value} was acknowledged at {send.offset}, reads reached {highest}"


def unseen_values(history: History, partition: str) -> Iterator[str]:
    """Acknowledged, absent from the final reads; of a transaction, if it was committed."""
    final = set(history.final(partition).values())
    held_back = history.held_back.get(partition, ())
    for send in history.durable_sends(partition):
        if send.value not in final:
            yield f"{send.value} was acknowledged at {send.offset} and is not there"
        elif send.value in held_back and history.fate_of(send) is Fate.COMMITTED:
            yield f"{send.value} counts, at {send.offset}, and is kept from readers"


def compaction(history: History, partition: str) -> Iterator[str]:
    """Each key has its last value; one that a tombstone ended does not come back.

    What an aborted transaction wrote is nobody's last value.
    """
    retention = history.retention.get(partition, Retention(partition))
    if not retention.compacted:
        return
    offsets = {value: offset for offset, value in history.final(partition).items()}
    final: dict[str, list[int]] = defaultdict(list)
    last: dict[str, tuple[int, Send]] = {}
    for send in history.sends[partition]:
        if history.fate_of(send) is not Fate.COMMITTED:
            continue
        offset = offsets.get(send.value, send.offset if send.outcome is Outcome.OK else -1)
        if send.value in offsets:
            final[send.key].append(offset)
        if offset >= max(retention.start, last[send.key][0] if send.key in last else 0):
            last[send.key] = (offset, send)
    for key, (offset, send) in sorted(last.items()):
        if offset in final[key]:
            continue
        if not send.tombstone:
            yield f"{send.value}, the last of key {key}, stood at {offset} and is not there"
        elif final[key]:
            yield f"key {key} ended at {offset}, and stands at {sorted(final[key])} again"


def duplicate(history: History, partition: str) -> Iterator[str]:
    """One value at two offsets, unless the first was deleted before the leader of the second began.

    A replica that begins after records were deleted knows nothing of their producers.
    """
    offsets: dict[str, set[int]] = defaultdict(set)
    for offset, value in history.records_read(partition):
        offsets[value].add(offset)
    starts = [leads.log_start for leads in history.leads if leads.partition == partition]
    for value, places in sorted(offsets.items()):
        for earlier, later in pairwise(sorted(places)):
            if not any(earlier < start <= later for start in starts):
                yield f"{value} stands at {sorted(places)}"
                break


def phantom(history: History, partition: str) -> Iterator[str]:
    """A value nobody wrote, or that a producer was told had failed for good."""
    written = {send.value for send in history.sends[partition] if send.outcome is not Outcome.FAIL}
    for offset, value in history.records_read(partition):
        if value not in written:
            yield f"{value} at {offset} was not written"


def poll_order(history: History, partition: str) -> Iterator[str]:
    """Within one assignment offsets only rise, and pass over nothing the final reads have.

    But for what another replica may have compacted before.
    """
    replaced = _replaced_offsets(history, partition)
    finals = {
        committed: sorted(history.final(partition, committed=committed))
        for committed in (False, True)
    }
    needed = {
        committed: [offset for offset in final if offset not in replaced]
        for committed, final in finals.items()
    }
    known = {committed: frozenset(final) for committed, final in finals.items()}
    last: dict[tuple[str, int, bool], int] = {}
    for poll in history.polls[partition]:
        key = (poll.process, poll.assigned, poll.committed)
        for offset, _ in poll.records:
            before = last.get(key)
            if before is not None and offset <= before:
                yield f"{poll.process} read {offset} after {before}"
            elif before in known[poll.committed]:
                following = needed[poll.committed]
                at = bisect_right(following, before)
                if at < len(following) and following[at] < offset:
                    yield f"{poll.process} read {offset} after {before}, over {following[at]}"
            last[key] = offset


def _replaced_offsets(history: History, partition: str) -> frozenset[int]:
    """Of a compacted partition: tombstones, and records that a later one of their key replaces.

    Every replica compacts at a time of its own.
    """
    if not history.retention.get(partition, Retention(partition)).compacted:
        return frozenset()
    offsets = {value: offset for offset, value in history.final(partition).items()}
    placed = [
        (offsets.get(send.value, send.offset), send)
        for send in history.sends[partition]
        if history.fate_of(send) is Fate.COMMITTED
    ]
    last: dict[str, int] = {}
    for offset, send in placed:
        last[send.key] = max(offset, last.get(send.key, -1))
    return frozenset(offset for offset, send in placed if send.tombstone or offset < last[send.key])


def send_order(history: History, partition: str) -> Iterator[str]:
    """What one producer sent first stands first."""
    last: dict[str, Send] = {}
    for send in sorted(history.sends[partition], key=lambda send: send.invoked_ns):
        if send.outcome is not Outcome.OK or send.offset < 0:
            continue
        before = last.get(send.process)
        if before is not None and send.offset <= before.offset:
            yield f"{send.value} at {send.offset} was sent after {before.value} at {before.offset}"
        last[send.process] = send


def high_watermark(history: History, partition: str) -> Iterator[str]:
    """It does not fall while one leader leads, as one reader hears it."""
    last: dict[tuple[str, int], int] = {}
    for poll in history.polls[partition]:
        if poll.high_watermark < 0:
            continue
        key = (poll.process, poll.leader_epoch)
        if poll.high_watermark < last.get(key, -1):
            yield f"{poll.process} heard {poll.high_watermark} after {last[key]}"
        last[key] = poll.high_watermark

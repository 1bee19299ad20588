"""Readable transcripts of two replicas, in tests/scenarios/replica.

REWRITE=1 in the environment writes them anew, and the diff is reviewed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes.data_side import ME, OTHER
from tests.fakes.replica_pair import ReplicaPair, replica_pair

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "replica"


class Transcript:
    def __init__(self, title: str, pair: ReplicaPair) -> None:
        self.lines = [f"# {title}", ""]
        self._pair = pair

    async def note(self, what: str) -> None:
        """What happened, and where both logs are once everything has come to rest."""
        await self._pair.pass_ms(1_200)
        self.lines.append(f"> {what}")
        for broker in (ME, OTHER):
            partition = self._pair.partition(broker)
            role = "leader  " if partition.leadership is not None else "follower"
            log = partition.log
            epochs = " ".join(f"{epoch}@{start}" for epoch, start in log.epochs.entries)
            self.lines.append(
                f"broker {broker} {role} log end {log.end_offset}, "
                f"high watermark {log.high_watermark}, epochs {epochs or 'none'}"
            )
        self.lines.append("")

    def check(self, name: str) -> None:
        path, text = SCENARIOS / name, "\n".join(self.lines)
        if os.environ.get("REWRITE"):
            path.write_text(text)
        assert path.read_text() == text


@pytest.mark.spec("REP-13", "REP-14", "REP-15", "REP-16", "REP-02", "REP-03")
async def test_log_end_and_high_watermark_from_leader_to_follower() -> None:
    async with replica_pair() as pair:
        told = Transcript("How log end and high watermark reach the follower.", pair)
        await pair.lead(ME, epoch=0)
        await told.note("broker 0 leads; nothing was written")
        await pair.data(ME).start_append(b"a", acks=-1)
        await told.note("one record, acknowledged by both")
        pair.links[ME].cut = True
        await told.note("the follower is cut off")
        await pair.data(ME).append(b"b")
        await told.note("one more record, acknowledged by the leader alone")
        pair.links[ME].cut = False
        await told.note("the follower is back: it fetches, and with its next fetch it is committed")
        told.check("high_watermark.txt")


@pytest.mark.spec("REP-36", "REP-37", "REP-39", "REP-40")
async def test_the_loss_that_leader_epochs_prevent() -> None:
    async with replica_pair() as pair:
        told = Transcript("Truncating to the high watermark would lose a record here.", pair)
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"a", acks=-1)
        follower = pair.partition(OTHER).log
        await told.note("one record, acknowledged by both")
        pair.links[ME].cut = True
        follower._high_watermark = 0  # as its checkpoint has it after a crash
        await told.note("the follower restarts; its high watermark is of before the record")
        pair.links[ME].cut = False
        await pair.lead(ME, epoch=1)
        await told.note("it follows again: by its leader epoch nothing has to be truncated")
        pair.links[ME].cut = True
        await pair.lead(OTHER, epoch=2, isr=(OTHER,), to=(OTHER,))
        await told.note("the leader dies, the follower leads: the record is there")
        await pair.data(ME).append(b"never acknowledged")
        await pair.data(OTHER).append(b"b")
        await told.note("both write at the same offset, each in its epoch")
        await pair.lead(OTHER, epoch=2, isr=(OTHER,), to=(ME,))
        await told.note("the old leader follows: it truncates where the epochs part, and copies")
        assert pair.contents(ME) == pair.contents(OTHER)
        told.check("leader_epochs.txt")

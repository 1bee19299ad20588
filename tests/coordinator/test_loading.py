"""A partition of an internal topic is read back whole, in turns, off the loop."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.coordinator.coordinating import OFFSETS, coordinating
from tests.fakes.virtual_loop import run


@pytest.mark.spec("GRP-75", "GRP-76", "GRP-50")
def test_every_record_is_replayed_and_kinds_that_are_not_known_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with coordinating() as made:
            for number in range(1_200):
                await made.commit(number, f"g{number % 7}")
            strange = build([NewRecord(b"\0\x63what", b"is it"), NewRecord(None, b"no key")])
            outcome = made.side.start_append(key=OFFSETS, records=strange)
            assert (await outcome).error_code is ErrorCode.invalid_topic_exception
            partition = made.side.hosted.get(OFFSETS)
            partition.log.config = made.side.config.topic("plain")
            partition.log.append(strange, leader_epoch=0, now_ms=0)
            await made.commit(5_000, "g1")
            await made.side.follow(OFFSETS, epoch=1)
            await made.side.lead(OFFSETS, epoch=2)
            turns = 0
            while made.runtime.is_loading():
                await asyncio.sleep(0)
                turns += 1
            assert turns > 2, "others had their turns meanwhile"
            assert await made.committed("g1") == 5_000
            assert await made.committed("g2") == 1_199 - (1_199 - 2) % 7

    with caplog.at_level(logging.WARNING):
        run(story())
    assert "2 records of unknown kinds" in caplog.text


def test_a_partition_that_cannot_be_read_is_not_coordinated() -> None:
    async def story() -> None:
        async with coordinating() as made:
            garbage = build([NewRecord(b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3cut")])
            partition = made.side.hosted.get(OFFSETS)
            partition.log.append(garbage, leader_epoch=0, now_ms=0)
            await made.side.follow(OFFSETS, epoch=1)
            await made.side.lead(OFFSETS, epoch=2)
            await made.side.settle()
            with pytest.raises(Exception, match="not_coordinator"):
                await made.committed()

    run(story())

"""The controller's way to its own broker: the same frames, without a socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.api.interbroker import stop_replica
from ottla.broker.broker_links import LocalLink
from ottla.model.errors import ErrorCode
from ottla.net.request_slot import RequestSlot
from ottla.protocol import wire
from tests.fakes.api_side import api_side
from tests.fakes.file_slice import FakeSlice
from tests.fakes.manual_time import ManualClock

ASK = {"controller_id": 0, "controller_epoch": 1, "broker_epoch": -1, "topic_states": []}


@pytest.mark.spec("NET-31", "CTL-21")
async def test_what_the_controller_says_goes_through_encoding_dispatch_and_decoding() -> None:
    async with api_side() as side:
        link = LocalLink(side.dispatch, side.data.clock)
        reply = await link.ask(stop_replica.API.key, ASK, 1_000)
        assert reply.version == 4
        assert reply.body.error_code is ErrorCode.none
        assert side.data.services.transitions.controller_epoch == 1
        link.close()


async def test_a_reply_of_several_parts_and_files_is_one_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0efg0")

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        assert slot.peer.is_broker
        assert slot.api == int.from_bytes(frame[:2], "big")
        slot.reply([b"\0\0\0\x07ab", memoryview(b"cd"), FakeSlice(tmp_path / "file", 1, 3)])

    frame = wire.encode_request(5, 4, 1, None, ASK)
    reply = await LocalLink(answer, ManualClock()).call(frame, 1_000)
    assert bytes(reply) == b"abcdefg"


async def test_a_connection_that_would_be_closed_is_an_error_for_the_controller() -> None:
    def answer(_: memoryview, slot: RequestSlot) -> None:
        slot.close("no")

    with pytest.raises(ConnectionAbortedError, match="no"):
        await LocalLink(answer, ManualClock()).ask(5, ASK, 1_000)


async def test_an_answer_after_the_controller_has_given_up_is_dropped() -> None:
    slots: list[RequestSlot] = []
    link = LocalLink(lambda _, slot: slots.append(slot), ManualClock())
    with pytest.raises(TimeoutError):
        await link.ask(5, ASK, 1_000)
    slots[0].reply([b"\0\0\0\0"])

"""A slot: who asked, and exactly one answer."""

from __future__ import annotations

import pytest

from ottla.net.request_slot import RequestSlot
from tests.net.rig import FakeReplyOrder


def test_a_second_answer_is_a_broken_invariant() -> None:
    slot = RequestSlot(FakeReplyOrder(), 0, 0, 0)
    slot.reply_nothing()
    with pytest.raises(AssertionError):
        slot.reply([b"x"])


@pytest.mark.spec("NET-21")
def test_to_close_is_an_answer_too() -> None:
    order = FakeReplyOrder()
    slot = RequestSlot(order, 0, 0, 0)
    slot.close("why")
    assert order.reasons == ["why"]
    assert order.replies == [slot]


@pytest.mark.spec("NET-18", "NET-19")
def test_a_request_knows_who_sent_it_through_which_listener() -> None:
    slot = RequestSlot(FakeReplyOrder(), 3, 7, 8)
    peer = slot.peer
    assert (peer.address, peer.port) == ("10.0.0.1", 99)
    assert (peer.listener, peer.protocol) == ("INTERNAL", "SASL_PLAINTEXT")
    assert peer.connection_id == "INTERNAL-10.0.0.1:99"
    assert str(peer) == "10.0.0.1:99"
    peer.software_name, peer.software_version = "librdkafka", "2.8.0"
    assert slot.peer.software_name == "librdkafka"
    assert (slot.api, slot.received_ns, slot.started_ns) == (3, 7, 8)

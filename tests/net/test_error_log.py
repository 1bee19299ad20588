"""Log lines about peers: one each, escaped, and never a flood."""

from __future__ import annotations

import logging

import pytest

from ottla.net.error_log import LINES_PER_WINDOW, WINDOW_MS, PeerErrorLog
from ottla.net.request_slot import Peer
from tests.fakes.manual_time import ManualClock


def test_a_line_names_peer_listener_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        PeerErrorLog(ManualClock()).closed(
            Peer("10.0.0.1", 99, "PLAINTEXT", "PLAINTEXT"), "size -1"
        )
    assert [record.getMessage() for record in caplog.records] == [
        "closed connection from 10.0.0.1:99 on listener PLAINTEXT: size -1"
    ]


def test_a_peer_cannot_write_lines_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        peer = Peer("10.0.0.1", 99, "PLAINTEXT", "PLAINTEXT")
        PeerErrorLog(ManualClock()).closed(peer, "client \r\nINFO all is well \x1b[2J")
    assert "\n" not in caplog.records[0].getMessage()
    assert "\x1b" not in caplog.records[0].getMessage()


def test_a_flood_becomes_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    complaints = PeerErrorLog(clock)
    peer = Peer("10.0.0.1", 99, "PLAINTEXT", "PLAINTEXT")
    with caplog.at_level(logging.WARNING):
        for _ in range(1_000):
            complaints.closed(peer, "size -1")
        assert len(caplog.records) == LINES_PER_WINDOW
        clock.ns += WINDOW_MS * 1_000_000
        complaints.closed(peer, "size -1")
    assert f"{1_000 - LINES_PER_WINDOW} more connections" in caplog.records[-2].getMessage()
    assert len(caplog.records) == LINES_PER_WINDOW + 2

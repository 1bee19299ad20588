"""The coordinators of a broker live and end with it."""

from __future__ import annotations

import time

import pytest

from ottla.api import join_group
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.testing import Broker
from tests.api.group_member import new_group, open_line, stable


@pytest.mark.spec("GRP-78")
def test_a_broker_stops_at_once_though_a_member_waits_for_others() -> None:
    """A join may wait for minutes; whoever waits is sent to look for another coordinator."""
    group = new_group()
    with Broker() as broker:
        with open_line(broker) as first:
            stable(first, group)
        second = open_line(broker)
        fields = {
            "group_id": group,
            "session_timeout": 60_000,
            "rebalance_timeout": 600_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        second.send(wire.encode_request(join_group.KEY, 1, 7, "waits", fields))
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 60, "it was to wait for ten minutes"
    reply = second.receive()
    if reply is not None:  # it may come before the connection ends, or not
        decoded = wire.decode_reply(join_group.KEY, 1, memoryview(reply))
        assert decoded.error_code is ErrorCode.not_coordinator
    second.socket.close()

"""Names that clients choose for themselves: accepted, and escaped everywhere they are shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import pytest

from ottla.cli import main
from ottla.cli.kafka import main as kafka_main
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.testing import Broker
from tests.api.consumer_member import beat
from tests.bad_input.producers import begun
from tests.raw_requests import Line, create_topics

E = ErrorCode
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
LEAVE_GROUP: Final = 13
NAMES: Final = {
    "a line of its own": "a\r\n2026-01-01 00:00:00,000 INFO ottla.security.audit: forged",
    "escape codes": "\x1b[2J\x1b[31mred\x07",
    "a control sequence of one character": "\x9b31mred",
    "text from right to left": "a\u202eb\u2028c",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    with Broker(settings) as running, Line(running.bootstrap_servers) as line:
        create_topics(line, ["orders"])
        for key_type in (0, 1):  # makes the internal topics
            line.ask(FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=["any"])
        while beat(line, "any").error_code is not E.none:
            pass
        yield running


@pytest.fixture
def line(broker: Broker) -> Iterator[Line]:
    with Line(broker.bootstrap_servers) as opened:
        yield opened


def join(line: Line, group: str, client: str, member: str = "") -> tuple[ErrorCode, str]:
    """A member of a classic group, by a client of this name; code and member id."""
    fields = {
        "group_id": group, "session_timeout": 30_000, "rebalance_timeout": 1_000,
        "member_id": member, "group_instance_id": None, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}], "reason": None,
    }  # fmt: skip
    line.send(wire.encode_request(JOIN_GROUP, 9, 1, client, fields))
    reply = line.receive()
    assert reply is not None
    said = wire.decode_reply(JOIN_GROUP, 9, memoryview(reply))
    return said.error_code, said.member_id


@pytest.mark.spec("NET-15")
@pytest.mark.parametrize("name", NAMES)
def test_no_log_line_holds_what_a_client_calls_itself_unescaped(
    line: Line, broker: Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ottla")
    evil, group = NAMES[name], f"group {name} {NAMES[name]}"
    assert beat(line, group, member_id=evil).error_code is E.none
    assert beat(line, group, -1, member_id=evil).error_code is E.none
    classic = f"classic {group}"
    code, member = join(line, classic, evil)
    assert (code, member.startswith(evil)) == (E.member_id_required, True)
    assert join(line, classic, evil, member)[0] is E.none
    with Line(broker.bootstrap_servers) as other:  # does not wait for the first, who is dropped
        _, second = join(other, classic, "other")
        assert join(other, classic, "other", second)[0] is E.none
    begun(line, 2, f"transactional {evil}")
    assert any("removed member" in record.getMessage() for record in caplog.records)
    for record in caplog.records:
        assert record.getMessage().isprintable(), record.getMessage()


def subscribed(line: Line, group: str, member: str) -> bool:
    """Whether it reads the partition of `orders` now."""
    said = beat(line, group, member_id=member, subscribed_topic_names=["orders"])
    return said.assignment is not None and bool(said.assignment.topic_partitions)


@pytest.mark.spec("TOOL-12")
@pytest.mark.parametrize("name", NAMES)
def test_no_command_shows_what_a_client_calls_itself_unescaped(
    line: Line, broker: Broker, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    evil, group = NAMES[name], f"shown-{sorted(NAMES).index(name)}"
    while not subscribed(line, group, evil):
        pass
    at = ["--bootstrap-server", broker.bootstrap_servers]
    assert main.run(["groups", "describe", group, *at]) == 0
    tools = "kafka-consumer-groups.sh"
    assert kafka_main.run(tools, ["--describe", "--group", group, *at]) == 0
    assert kafka_main.run(tools, ["--describe", "--members", "--group", group, *at]) == 0
    shown = capfd.readouterr()
    assert "orders" in shown.out
    for text in (shown.out, shown.err):
        for shown_line in text.split("\n"):
            assert shown_line.isprintable(), shown_line

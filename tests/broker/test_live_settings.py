"""Settings do what they say, and those that may change do so without a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import read_header
from ottla.testing import Broker
from tests.raw_requests import FETCH, Line, batch, create_topics, fetch_fields, fetched, produced

ALTER: int = 44
TOPIC, BROKER = 2, 4
ALL_BROKERS, THIS_BROKER = "", "0"
LARGE = batch("x" * 5_000)


@pytest.fixture
def line() -> Iterator[Line]:
    with Broker() as broker, Line(broker.bootstrap_servers) as connection:
        create_topics(connection, ["t"])
        yield connection


def alter(line: Line, kind: int, name: str, **settings: str) -> None:
    changes = [
        {"name": key.replace("_", "."), "config_operation": 0, "value": value}
        for key, value in settings.items()
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": changes}
    reply = line.ask(ALTER, 1, resources=[resource], validate_only=False)
    assert [one.error_code for one in reply.responses] == [ErrorCode.none], reply


def until(ask: Callable[[], Any], expected: object) -> None:
    """A change is answered when it is stored; it takes effect a moment later."""
    for _ in range(2_000):
        if ask() == expected:
            return
    assert ask() == expected


def code(line: Line, records: bytes = LARGE) -> Callable[[], ErrorCode]:
    return lambda: produced(line, "t", records).error_code


@pytest.mark.spec("CFG-032")
@pytest.mark.parametrize("where", [ALL_BROKERS, THIS_BROKER])
def test_the_largest_batch_changes_for_one_broker_or_all(line: Line, where: str) -> None:
    alter(line, BROKER, where, message_max_bytes="1000")
    until(code(line), ErrorCode.message_too_large)
    alter(line, BROKER, where, message_max_bytes="10000")
    until(code(line), ErrorCode.none)


@pytest.mark.spec("CFG-032")
def test_a_topics_own_word_beats_its_brokers(line: Line) -> None:
    alter(line, TOPIC, "t", max_message_bytes="1000")
    alter(line, BROKER, ALL_BROKERS, message_max_bytes="100000")
    until(code(line), ErrorCode.message_too_large)


@pytest.mark.spec("CFG-035")
def test_whose_clock_stamps_records(line: Line) -> None:
    def is_stamped() -> bool:
        return produced(line, "t", LARGE).log_append_time is not None

    assert not is_stamped()
    alter(line, TOPIC, "t", message_timestamp_type="LogAppendTime")
    until(is_stamped, True)


@pytest.mark.spec("CFG-037")
def test_the_codec_of_what_is_stored(line: Line) -> None:
    def codec() -> Codec:
        offset = produced(line, "t", LARGE).base_offset
        return read_header(memoryview(fetched(line, "t", offset).records)).codec

    assert codec() is Codec.NONE
    alter(line, BROKER, ALL_BROKERS, compression_type="zstd")
    until(codec, Codec.ZSTD)


@pytest.mark.spec("CFG-018")
def test_how_many_may_connect_from_one_address() -> None:
    with Broker() as broker, Line(broker.bootstrap_servers) as line:
        alter(line, BROKER, THIS_BROKER, max_connections_per_ip="1")

        def is_let_in() -> bool:
            with Line(broker.bootstrap_servers) as other:
                try:
                    other.ask(18, 0)
                except (AssertionError, ConnectionError):
                    return False
                return True

        until(is_let_in, False)


def test_a_fetch_reply_is_no_larger_than_the_broker_allows() -> None:
    with Broker({"fetch.max.bytes": "12000"}) as broker, Line(broker.bootstrap_servers) as line:
        create_topics(line, ["t", "u"])
        for topic in ("t", "t", "u", "u"):
            produced(line, topic, LARGE)
        fields = fetch_fields("t")
        fields["topics"] += fetch_fields("u")["topics"]
        reply = line.ask(FETCH, 12, **fields)
        sizes = [len(topic.partitions[0].records or b"") for topic in reply.responses]
        assert 2 * len(LARGE) <= sum(sizes) <= 12_000


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = "listener.name.clients.plain.sasl.jaas.config"
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


def logged_in(address: str, user: str) -> Line | None:
    """A connection of this user, or None: who is not let in."""
    line = Line(address)
    assert line.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code is ErrorCode.none
    token = f"\0{user}\0{user}-secret".encode()
    if line.ask(SASL_AUTHENTICATE, 2, auth_bytes=token).error_code is ErrorCode.none:
        return line
    line.socket.close()
    return None


@pytest.mark.spec("SEC-05")
def test_new_users_of_plain_are_let_in_old_ones_not_and_their_connections_stay() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        USERS: f'{PLAIN} user_alice="alice-secret";',
        "connection.failed.authentication.delay.ms": "0",
    }

    def may_log_in(user: str) -> bool:
        with logged_in(clients, user) or nullcontext() as line:
            return line is not None

    with Broker(settings) as broker, ExitStack() as stack:
        plaintext, clients = broker.bootstrap_servers.split(",")
        line = stack.enter_context(Line(plaintext))
        create_topics(line, ["t"])
        alice = logged_in(clients, "alice")
        assert alice is not None
        stack.enter_context(alice)
        assert not may_log_in("bob")
        alter(line, BROKER, THIS_BROKER, **{USERS: f'{PLAIN} user_bob="bob-secret";'})
        until(lambda: may_log_in("bob"), True)
        assert not may_log_in("alice")
        assert produced(alice, "t", LARGE).error_code is ErrorCode.none
        change = {"name": USERS, "config_operation": 0, "value": f"{PLAIN} user_bob="}
        resource = {"resource_type": BROKER, "resource_name": "0", "configs": [change]}
        refused = line.ask(ALTER, 1, resources=[resource], validate_only=False)
        assert refused.responses[0].error_code is not ErrorCode.none, "it cannot be read"
        assert may_log_in("bob"), "what was in force stays"

"""One broker: its connection, and the versions it speaks."""

from __future__ import annotations

import socket
from random import Random

import pytest

from ottla.client.broker_connection import BrokerConnection
from ottla.client.cluster_view import Node
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode
from tests.client.rig import config_for, until
from tests.fakes.scripted_broker import API_VERSIONS, METADATA, SILENCE, ScriptedBroker

ALL_TOPICS = {"topics": None, "allow_auto_topic_creation": False}


def link_to(broker: ScriptedBroker, **options: object) -> BrokerConnection:
    node = Node(0, "127.0.0.1", broker.port)
    return BrokerConnection(node, config_for(broker.address, **options), SystemClock(), Random(1))


@pytest.mark.real_loop
async def test_a_broker_that_speaks_only_old_versions_is_asked_again_in_one_of_them() -> None:
    async with ScriptedBroker() as broker:
        broker.versions[API_VERSIONS] = (0, 2)
        # What an old broker does: it answers in the oldest format, with what it knows.
        old = b"\0\0\0\x10" + b"%b" + b"\0\x23" + b"\0\0\0\x01" + b"\0\x12\0\0\0\x02"
        broker.script(API_VERSIONS, lambda request: old.replace(b"%b", b"\0\0\0\x01"))
        link = link_to(broker)
        versions = await link.ready()
        assert versions.pick(API_VERSIONS) == 2
        assert [version for key, version, _ in broker.asked if key == API_VERSIONS] == [4, 2]
        link.peer.close()


@pytest.mark.real_loop
async def test_versions_are_learned_anew_with_every_connection() -> None:
    async with ScriptedBroker() as broker:
        link = link_to(broker)
        assert (await link.ready()).pick(METADATA) == 13
        broker.versions[METADATA] = (0, 9)
        broker.hang_up()
        await until(lambda: not link.peer.is_open)
        assert (await link.ready()).pick(METADATA) == 9
        link.peer.close()


@pytest.mark.real_loop
async def test_a_broker_that_refuses_to_say_is_no_broker() -> None:
    async with ScriptedBroker() as broker:
        broker.script(API_VERSIONS, {"error_code": ErrorCode.invalid_request, "api_keys": []})
        link = link_to(broker)
        with pytest.raises(ConnectionError, match="invalid_request"):
            await link.ready()
        assert not link.peer.is_open
        assert link.peer.not_before_ms > 0
        link.peer.close()


@pytest.mark.real_loop
async def test_a_broker_that_accepts_and_says_nothing_is_given_up() -> None:
    async with ScriptedBroker() as broker:
        broker.script(API_VERSIONS, SILENCE)
        link = link_to(broker, socket_connection_setup_timeout_ms=30)
        with pytest.raises(TimeoutError):
            await link.ready()
        link.peer.close()


@pytest.mark.real_loop
async def test_an_answer_that_makes_no_sense_ends_the_connection() -> None:
    async with ScriptedBroker() as broker:
        link = link_to(broker)
        await link.ready()
        with pytest.raises(ConnectionError, match="cannot decode response"):
            link.read(METADATA, 1, memoryview(b"\0\0\0\x01nonsense"))
        assert not link.peer.is_open
        link.peer.close()


@pytest.mark.spec("PRD-45", "PRD-47")
@pytest.mark.real_loop
async def test_a_request_can_be_posted_without_waiting_and_only_over_an_open_connection() -> None:
    async with ScriptedBroker() as broker:
        link = link_to(broker)
        assert link.post(METADATA, 1, [b"\xff\xff\xff\xff"]) is None
        assert not link.put(METADATA, 1, [b"\xff\xff\xff\xff"])
        await link.ready()
        replies = [link.post(METADATA, 1, [b"\xff\xff\xff\xff"]) for _ in range(3)]
        assert link.peer.in_flight == 3
        for reply in replies:
            assert reply is not None
            assert link.read(METADATA, 1, await reply).controller_id == 0
        link.peer.close()


@pytest.mark.spec("CFG-087")
@pytest.mark.real_loop
async def test_connections_have_the_buffers_that_were_asked_for() -> None:
    async with ScriptedBroker() as broker:
        link = link_to(broker, send_buffer_bytes=50_000, receive_buffer_bytes=40_000)
        await link.ready()
        exchange = link.peer._exchange
        assert exchange is not None
        plain = exchange._transport.get_extra_info("socket")
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 50_000
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 40_000
        assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        link.peer.close()


@pytest.mark.spec("CFG-080")
@pytest.mark.real_loop
async def test_the_broker_hears_who_asks() -> None:
    async with ScriptedBroker() as broker:
        link = link_to(broker, client_id="shop")
        await link.ready()
        await link.ask(METADATA, 1, ALL_TOPICS, 60_000)
        greeting = next(asked for key, _, asked in broker.asked if key == API_VERSIONS)
        assert greeting.client_software_name == "ottla"
        link.peer.close()

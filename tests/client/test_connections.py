"""Which connection to use."""

from __future__ import annotations

from random import Random

import pytest

from ottla.client.cluster_view import Node
from ottla.client.connections import ConnectionLane, Connections
from tests.client.rig import config_for
from tests.fakes.manual_time import ManualClock
from tests.fakes.scripted_broker import API_VERSIONS, METADATA, SILENCE, ScriptedBroker


def links(*addresses: str, **options: object) -> tuple[Connections, ManualClock]:
    clock = ManualClock(1_000)
    return Connections(config_for(*(addresses or ("boot:1",)), **options), clock, Random(1)), clock


@pytest.mark.spec("PRD-42")
@pytest.mark.real_loop
async def test_a_broker_has_one_connection_for_each_lane_and_another_when_it_moves() -> None:
    made, _ = links()
    one = made.to(Node(1, "h", 1))
    assert made.to(Node(1, "h", 1, rack="r")) is one
    assert made.to(Node(1, "h", 1), ConnectionLane.COORDINATION) is not one
    assert made.to(Node(1, "elsewhere", 1)) is not one
    made.close()


@pytest.mark.spec("PRD-48")
@pytest.mark.real_loop
async def test_the_least_loaded_broker_is_the_connected_one_with_the_fewest_questions() -> None:
    async with ScriptedBroker(id=1) as first, ScriptedBroker(id=2) as second:
        made, _ = links(first.address)
        nodes = {each.id: Node(each.id, "127.0.0.1", each.port) for each in (first, second)}
        nodes[3] = Node(3, "127.0.0.1", 1)  # nobody there
        one, two = made.to(nodes[1]), made.to(nodes[2])
        await one.ready()
        assert next(made.any(nodes)) is one, "connected"
        await two.ready()
        first.script(METADATA, SILENCE)
        one.post(METADATA, 1, [b"\xff\xff\xff\xff"])
        assert next(made.any(nodes)) is two, "fewer questions"
        with pytest.raises(OSError):
            await made.to(nodes[3]).ready()
        assert [link.node.id for link in made.any(nodes)] == [2, 1, 3], "out of reach comes last"
        made.close()


@pytest.mark.real_loop
async def test_the_brokers_we_began_with_serve_until_others_are_known_and_when_all_are_gone() -> (
    None
):
    async with ScriptedBroker() as broker:
        made, _ = links(broker.address)
        [start] = made.any({})
        assert start.node.id == -1
        await start.ready()
        nodes = {3: Node(3, "127.0.0.1", 1)}
        assert [link.node.id for link in made.any(nodes)] == [3]
        with pytest.raises(OSError):
            await made.to(nodes[3]).ready()
        assert [link.node.id for link in made.any(nodes)] == [3, -1]
        made.forget_bootstrap()
        assert not start.peer.is_open
        made.close()


@pytest.mark.spec("CFG-085", "CON-54")
@pytest.mark.real_loop
async def test_a_connection_that_is_not_used_is_closed() -> None:
    async with ScriptedBroker() as broker:
        made, clock = links(broker.address, connections_max_idle_ms=5_000)
        idle = made.to(Node(0, "127.0.0.1", broker.port))
        await idle.ready()
        clock.ns += 4_000_000_000
        made.to(Node(1, "h", 1))
        assert idle.peer.is_open
        clock.ns += 2_000_000_000
        made.to(Node(2, "h", 1))
        assert not idle.peer.is_open
        assert broker.count(API_VERSIONS) == 1
        made.close()

"""Requests that wait for a slow broker."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.machine import on_event
from ottla.controller.runtime.broker_requests import PARTITIONS_MAX, Request, requests
from ottla.controller.runtime.request_queue import RequestQueue
from ottla.model.ids import BrokerId
from ottla.protocol import wire
from ottla.protocol.interbroker import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, VERSIONS
from tests.controller.transcript import COMMANDS, Actor

L, S, U = LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA


class Slow:
    """Broker 2, which replies to nothing: what the controller decides waits for it."""

    def __init__(self, *before: str) -> None:
        self.actor = Actor()
        self.queue = RequestQueue()
        for command in before:
            self.run(command)
        while len(self.queue):
            self.queue.pop()

    def run(self, command: str) -> None:
        word, *rest = command.split()
        step = on_event(self.actor.state, COMMANDS[word](self.actor, rest))
        self.actor.state = step.state
        for request in requests(step.state, step.sends):
            if request.broker.id == BrokerId(2):
                self.queue.put(request)

    def taken(self) -> list[Request]:
        return [self.queue.pop() for _ in range(len(self.queue))]


def kinds(taken: list[Request]) -> list[int]:
    return [request.key for request in taken]


def states(request: Request) -> dict[tuple[str, int], Any]:
    """As the broker decodes it."""
    newest = VERSIONS[request.key][-1]
    frame = wire.encode_request(request.key, newest, 7, "controller", request.fields)
    view = memoryview(frame)[4:]
    topics = wire.decode(wire.parse_call(view), view).topic_states
    return {
        (topic.topic_name, state.partition_index): state
        for topic in topics
        for state in topic.partition_states
    }


@pytest.mark.spec("CTL-39", "CTL-41")
def test_what_waits_is_merged_into_the_newest_state_of_each_partition() -> None:
    slow = Slow("elected 1 1 2 3")
    for command in ("create t 0=2,1", "create u 0=1,2", "shutdown 1", "create v 0=2"):
        slow.run(command)
    led, metadata = slow.taken()
    assert (led.key, metadata.key) == (L, U), "leaders come before the metadata that names them"
    assert {key: state.leader for key, state in states(led).items()} == {
        ("t", 0): 2,
        ("u", 0): 2,
        ("v", 0): 2,
    }
    assert states(led)["u", 0].is_new, "as it was when it was put first"
    assert states(led)["u", 0].leader_epoch == 1
    assert states(metadata)["u", 0].leader == 2
    assert {leader["broker_id"] for leader in _leaders(led)} >= {2}
    assert set(led.names.values()) == {"t", "u", "v"}


@pytest.mark.spec("CTL-39")
def test_nothing_passes_a_stop_replica() -> None:
    slow = Slow("elected 1 1 2 3", "create t 0=2,1")
    slow.run("delete t")
    slow.run("create u 0=2")
    slow.run("create v 0=2")
    taken = slow.taken()
    assert kinds(taken) == [U, S, L, U]
    assert set(states(taken[2])) == {("u", 0), ("v", 0)}


@pytest.mark.spec("CTL-18", "CTL-39")
def test_leaders_do_not_pass_the_registration_of_a_broker_that_they_may_name() -> None:
    slow = Slow("elected 1 1 2")
    slow.run("create t 0=1,2")
    slow.run("brokers 1 2 3")
    slow.run("create u 0=3,2")
    taken = slow.taken()
    joined = next(n for n, request in enumerate(taken) if len(_brokers(request)) == 3)
    with_u = next(n for n, r in enumerate(taken) if r.key == L and ("u", 0) in states(r))
    assert joined < with_u


@pytest.mark.spec("CTL-52")
def test_the_deletion_of_a_topic_is_not_hidden_by_what_comes_after() -> None:
    slow = Slow("elected 1 1 2 3", "create t 0=1")
    slow.run("create u 0=1")
    slow.run("delete t")
    slow.run("create v 0=1")
    seen = [state.leader for r in slow.taken() for key, state in states(r).items() if key[0] == "t"]
    assert seen == [-2]


@pytest.mark.spec("CTL-39")
def test_metadata_that_is_next_is_not_put_off_by_what_arrives_meanwhile() -> None:
    slow = Slow("elected 1 1 2 3")
    slow.run("create t 0=2")
    sent = [slow.queue.pop().key]  # in flight
    for number in range(6):
        slow.run(f"create u{number} 0=2")
        sent.append(slow.queue.pop().key)
    assert sent == [L, U, L, U, L, U, L]


@pytest.mark.spec("CTL-41")
def test_a_merged_request_is_no_larger_than_others() -> None:
    slow = Slow("elected 1 1 2 3")
    many = " ".join(f"{n}=2" for n in range(PARTITIONS_MAX - 10))
    slow.run(f"create t {many}")
    slow.run(f"create u {many}")
    taken = slow.taken()
    assert kinds(taken).count(L) == 2
    assert all(len(states(request)) <= PARTITIONS_MAX for request in taken)
    leaders = [n for n, request in enumerate(taken) if request.key == L]
    named = [
        n for n, request in enumerate(taken) if request.key == U and ("u", 0) in states(request)
    ]
    assert max(leaders) < min(named)


def _leaders(request: Request) -> Any:
    return request.fields["live_leaders"]


def _brokers(request: Request) -> Any:
    return request.fields.get("live_brokers", ())

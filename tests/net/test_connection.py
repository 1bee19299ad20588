"""One connection: requests start in order, replies leave in order, only so many at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import Disconnect
from ottla.net.buffers import Buffers
from ottla.net.connection import Connection
from ottla.net.frame_reader import FrameReader
from ottla.net.limits import REQUESTS_PER_TURN, UNSTARTED_MAX, NetLimits
from ottla.net.request_slot import Peer, RequestSlot
from tests.fakes.manual_time import ManualClock
from tests.net.frames import number_of, reply, request


class Asked:
    """Answers at once, later or never, as the test says; keeps the slots of those not answered."""

    def __init__(self, at_once: Callable[[int], bool] = lambda _: True) -> None:
        self.order: list[int] = []
        self.slots: dict[int, RequestSlot] = {}
        self._at_once = at_once

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        number = number_of(frame)
        self.order.append(number)
        if self._at_once(number):
            slot.reply([reply(number)])
        else:
            self.slots[number] = slot


def connection(
    answer: Callable[[memoryview, RequestSlot], None], inflight_max: int = 100
) -> Connection:
    made = Connection(
        Peer("10.0.0.1", 99, "PLAINTEXT", "PLAINTEXT"),
        FrameReader(Buffers(), 1 << 20),
        answer,
        ManualClock(),
    )
    made.apply(NetLimits(max_inflight_requests_per_connection=inflight_max))
    return made


def arrive(one: Connection, *numbers: int) -> None:
    data = b"".join(map(request, numbers))
    space = one.reader.space()
    space[: len(data)] = data
    one.reader.filled(len(data))


def ready(one: Connection) -> list[int]:
    parts = [bytes(part) for slot in one.take() for part in slot.parts or ()]  # type: ignore[arg-type]
    return [int.from_bytes(part[4:8], "big") for part in parts]


@pytest.mark.spec("NET-12", "NET-11")
def test_requests_start_in_order_and_replies_given_at_once_leave_in_order() -> None:
    asked = Asked()
    one = connection(asked)
    arrive(one, 1, 2, 3)
    assert one.turn(0, 0) == (3, 0)
    assert asked.order == [1, 2, 3]
    assert ready(one) == [1, 2, 3]


@pytest.mark.spec("NET-12")
def test_a_reply_waits_for_those_before_it() -> None:
    asked = Asked(at_once=lambda number: number == 2)
    one = connection(asked)
    arrive(one, 1, 2, 3)
    one.turn(0, 0)
    assert ready(one) == []
    asked.slots[3].reply([reply(3)])
    assert ready(one) == []
    asked.slots[1].reply([reply(1)])
    assert ready(one) == [1, 2, 3]


@pytest.mark.spec("NET-12", "WIRE-04")
@given(later=st.permutations(range(8)), at_once=st.sets(st.integers(0, 7)), limit=st.integers(1, 8))
def test_whatever_the_order_of_answers_replies_leave_in_the_order_of_requests(
    later: list[int], at_once: set[int], limit: int
) -> None:
    asked = Asked(at_once=lambda number: number in at_once)
    one = connection(asked, inflight_max=limit)
    arrive(one, *range(8))
    left: list[int] = []
    pending = list(later)
    while len(left) < 8:
        one.turn(0, 0)
        assert len(one.inflight) <= limit
        for number in list(pending):
            if number in asked.slots:
                asked.slots[number].reply([reply(number)])
                pending.remove(number)
        left += ready(one)
    assert left == list(range(8))


@pytest.mark.spec("NET-11", "NET-12")
def test_at_the_bound_of_unanswered_requests_no_further_one_is_started() -> None:
    asked = Asked(at_once=lambda _: False)
    one = connection(asked, inflight_max=2)
    arrive(one, 1, 2, 3, 4)
    one.turn(0, 0)
    assert asked.order == [1, 2]
    assert one.muted
    asked.slots[1].reply([reply(1)])
    assert not one.muted
    one.turn(0, 0)
    assert asked.order == [1, 2, 3]


def test_a_turn_ends_after_its_share_of_requests() -> None:
    asked = Asked()
    one = connection(asked)
    arrive(one, *range(100))
    answered, _ = one.turn(0, 0)
    assert answered == REQUESTS_PER_TURN
    assert one.reader.has_frame


@pytest.mark.spec("NET-21")
def test_an_answer_may_be_nothing_and_still_keeps_its_place() -> None:
    def answer(frame: memoryview, slot: RequestSlot) -> None:
        number = number_of(frame)
        if number == 2:
            slot.reply_nothing()
        else:
            slot.reply([reply(number)])

    one = connection(answer)
    arrive(one, 1, 2, 3)
    one.turn(0, 0)
    slots = one.take()
    assert [len(slot.parts or ()) for slot in slots] == [1, 0, 1]


@pytest.mark.spec("NET-21")
def test_closing_keeps_the_replies_before_it_and_starts_nothing_after_it() -> None:
    def answer(frame: memoryview, slot: RequestSlot) -> None:
        number = number_of(frame)
        if number == 2:
            slot.close("acks=0 and an error")
        else:
            slot.reply([reply(number)])

    one = connection(answer)
    arrive(one, 1, 2, 3)
    one.turn(0, 0)
    assert one.ending == "acks=0 and an error"
    assert ready(one) == [1]


def test_the_first_reason_to_end_is_the_one_that_is_told() -> None:
    one = connection(Asked())
    one.end("first")
    one.end("second")
    assert one.ending == "first"


def test_a_peer_that_breaks_the_protocol_is_ended_with_the_reason() -> None:
    def refuse(_: memoryview, __: RequestSlot) -> None:
        raise Disconnect("client id of length -2")

    one = connection(refuse)
    arrive(one, 1, 2)
    assert one.turn(0, 0)[0] == 1
    assert one.ending == "client id of length -2"


@pytest.mark.spec("NET-15")
def test_a_fault_of_ours_is_logged_and_ends_only_this_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: memoryview, __: RequestSlot) -> None:
        raise ZeroDivisionError("ours")

    one = connection(fail)
    arrive(one, 1)
    with caplog.at_level(logging.ERROR):
        one.turn(0, 0)
    assert one.ending == "internal error while handling a request: ZeroDivisionError"
    assert "ours" in caplog.text


def test_a_frame_cannot_be_read_after_the_call_it_was_handed_to() -> None:
    kept: list[memoryview] = []

    def keep(frame: memoryview, slot: RequestSlot) -> None:
        kept.append(frame)
        slot.reply_nothing()

    one = connection(keep)
    arrive(one, 1)
    one.turn(0, 0)
    with pytest.raises(ValueError, match="released"):
        bytes(kept[0])


def test_replies_outside_a_turn_wake_whoever_drives_the_connection() -> None:
    asked = Asked(at_once=lambda _: False)
    one = connection(asked)
    woken: list[str] = []
    one.wake = lambda: woken.append("woken")
    arrive(one, 1, 2)
    one.turn(0, 0)
    asked.slots[2].reply([reply(2)])
    assert woken == [], "its turn has not come"
    asked.slots[1].reply([reply(1)])
    assert woken == ["woken"]


def test_one_request_may_answer_another_of_its_own_connection() -> None:
    slots: list[RequestSlot] = []
    woken: list[str] = []

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        slots.append(slot)
        if number_of(frame) == 2:  # a produce that a fetch before it waited for
            slot.reply([reply(2)])
            slots[0].reply([reply(1)])

    one = connection(answer)
    one.wake = lambda: woken.append("woken")
    arrive(one, 1, 2)
    one.turn(0, 0)
    assert ready(one) == [1, 2]
    assert woken == [], "the turn sends them itself"


def test_answers_for_a_peer_that_has_gone_are_dropped_with_their_files() -> None:
    asked = Asked(at_once=lambda number: number == 2)
    one = connection(asked)
    arrive(one, 1, 2)
    one.turn(0, 0)
    slot = asked.slots[1]
    assert slot.alive
    one.close()
    assert not slot.alive
    slot.reply([reply(1)])
    assert slot.parts == ()
    assert ready(one) == []


@pytest.mark.spec("NET-40")
def test_new_bounds_hold_for_connections_that_exist_but_do_not_revive_a_retired_one() -> None:
    one = connection(Asked(), inflight_max=5)
    one.apply(NetLimits(max_inflight_requests_per_connection=9, socket_request_max_bytes=1_000))
    assert (one.inflight_max, one.reader.max_bytes) == (9, 1_000)
    one.drain()
    one.apply(NetLimits())
    arrive(one, 1)
    assert one.turn(0, 0)[0] == 0


@pytest.mark.spec("NET-22", "NET-38")
def test_a_slot_remembers_when_it_passed_each_stage() -> None:
    clock = ManualClock()
    slots: list[RequestSlot] = []

    def answer(_: memoryview, slot: RequestSlot) -> None:
        clock.ns += 10
        slots.append(slot)

    one = Connection(Peer("h", 1, "L", "P"), FrameReader(Buffers(), 1 << 20), answer, clock)
    one.apply(NetLimits())
    arrive(one, 1)
    assert one.turn(3, 5) == (1, 10)
    clock.ns = 100
    slots[0].reply([b"x"])
    (slot,) = one.take()
    assert (slot.received_ns, slot.started_ns, slot.local_ns, slot.done_ns) == (3, 5, 10, 100)


def test_whoever_was_to_answer_later_hears_that_the_peer_has_gone() -> None:
    asked = Asked(at_once=lambda number: number == 1)
    one = connection(asked)
    arrive(one, 1, 2, 3, 4)
    one.turn(0, 0)
    gone: list[int] = []
    for number in (2, 3):
        asked.slots[number].on_disconnect = lambda number=number: gone.append(number)
    asked.slots[3].reply([reply(3)])
    one.close()
    assert gone == [2]  # the third was answered, of the fourth nobody wanted to know


async def test_a_request_may_wait_until_earlier_replies_have_left_or_the_peer_has_gone() -> None:
    asked = Asked(at_once=lambda number: number == 2)
    one = connection(asked)
    arrive(one, 1, 2, 3, 4)
    one.turn(0, 0)
    await asked.slots[1].wait_for_turn()
    waiting = [asyncio.ensure_future(asked.slots[number].wait_for_turn()) for number in (3, 4)]
    await asyncio.sleep(1)
    asked.slots[1].reply([reply(1)])
    await asyncio.sleep(1)
    assert not any(each.done() for each in waiting), "the replies are ready, but have not left"
    for slot in one.take():
        if slot.on_sent is not None:
            slot.on_sent()
    await asyncio.sleep(1)
    assert [each.done() for each in waiting] == [True, False]
    assert asked.slots[3].on_disconnect is None
    one.close()
    await asyncio.sleep(1)
    assert all(each.done() for each in waiting)


@pytest.mark.spec("NET-15", "NET-23")
def test_only_a_few_requests_wait_for_their_handlers_so_that_others_come_between() -> None:
    asked = Asked(at_once=lambda _: False)

    def hand_to_a_task(frame: memoryview, slot: RequestSlot) -> None:
        slot.peer.unstarted += 1
        asked(frame, slot)

    one = connection(hand_to_a_task)
    woken: list[int] = []
    one.wake = lambda: woken.append(len(asked.order))
    arrive(one, *range(10))
    assert one.turn(0, 0)[0] == UNSTARTED_MAX
    assert one.muted
    assert one.turn(0, 0)[0] == 0
    one.peer.started()
    assert woken == [UNSTARTED_MAX]
    assert not one.muted
    assert one.turn(0, 0)[0] == 1
    for _ in range(UNSTARTED_MAX):
        one.peer.started()
    assert len(woken) == 2  # once for each time that there was no room
    assert one.turn(0, 0)[0] == UNSTARTED_MAX
    assert asked.order == [*range(2 * UNSTARTED_MAX + 1)]

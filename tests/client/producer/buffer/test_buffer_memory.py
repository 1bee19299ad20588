"""Buffer memory: bounded, and given out in the order it was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.buffer.buffer_memory import BufferMemory, MemoryClaim


@pytest.mark.spec("PRD-24")
def test_what_is_taken_is_counted_until_it_is_given_back() -> None:
    memory = BufferMemory(100)
    assert memory.take(60)
    assert not memory.take(60)
    assert memory.free == 40
    memory.give_back(60)
    assert memory.take(100)


@pytest.mark.spec("PRD-25")
def test_those_who_wait_are_served_in_order_and_nobody_overtakes_them() -> None:
    memory, woken = BufferMemory(100), list[str]()
    assert memory.take(100)
    memory.wait(80, lambda: woken.append("first"))
    memory.wait(10, lambda: woken.append("second"))
    memory.give_back(50)
    assert woken == []
    assert not memory.take(10), "there is some, but others wait"
    assert memory.waiting == 2
    memory.give_back(50)
    assert woken == ["first", "second"]
    assert memory.free == 10


@pytest.mark.spec("PRD-25")
def test_who_gives_up_makes_way_and_gives_back_what_came_too_late() -> None:
    memory, woken = BufferMemory(100), list[str]()
    assert memory.take(60)
    large = memory.wait(90, lambda: woken.append("large"))
    small = memory.wait(40, lambda: woken.append("small"))
    memory.give_up(large)
    assert woken == ["small"]
    assert memory.free == 0
    memory.give_up(small)
    assert memory.free == 40


@given(st.lists(st.tuples(st.sampled_from(["take", "give", "wait", "quit"]), st.integers(1, 50))))
def test_nothing_is_ever_lost_or_given_twice(steps: list[tuple[str, int]]) -> None:
    memory, held, claims = BufferMemory(100), list[int](), list[MemoryClaim]()
    for step, size in steps:
        if step == "take" and memory.take(size):
            held.append(size)
        elif step == "give" and held:
            memory.give_back(held.pop())
        elif step == "wait":
            claims.append(memory.wait(size, lambda: None))
        elif step == "quit" and claims:
            memory.give_up(claims.pop())
        granted = sum(claim.size for claim in claims if claim.granted)
        assert memory.free + sum(held) + granted == 100
        assert memory.free >= 0
        assert memory.waiting == sum(not claim.granted for claim in claims)

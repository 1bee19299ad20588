"""Replies that nobody takes: bounded in all, at the cost of who has the most."""

from __future__ import annotations

from ottla.net.network import ReplyMemory


def test_nobody_goes_while_there_is_room_or_no_limit() -> None:
    bounded, unbounded = ReplyMemory[str](100), ReplyMemory[str]()
    assert bounded.note("a", 60) is None
    assert bounded.note("b", 40) is None
    assert bounded.note("a", 59) is None
    assert unbounded.note("a", 1 << 40) is None


def test_who_has_the_most_goes_whoever_came_last() -> None:
    memory = ReplyMemory[str](100)
    memory.note("a", 60)
    memory.note("b", 30)
    assert memory.note("c", 20) == "a"
    assert memory.note("a", 0) is None
    assert memory.total == 50
    assert memory.of("a") == 0
    assert not memory._sizes.get("a")

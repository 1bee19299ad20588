"""Receive memory: shared while idle, kept while needed, bounded in all."""

from __future__ import annotations

import pytest

from ottla.net.buffers import SPARE_MAX, Buffers


def test_the_views_of_a_buffer_show_the_same_memory_and_one_is_read_only() -> None:
    shared = Buffers(shared_bytes=16).shared
    shared.room[:3] = b"abc"
    assert bytes(shared.view[:3]) == b"abc"
    assert shared.view.readonly


@pytest.mark.spec("NET-20")
def test_a_kept_buffer_is_replaced_and_comes_back_to_be_shared_again() -> None:
    buffers = Buffers(shared_bytes=16)
    first = buffers.shared
    assert buffers.keep_shared() is first
    assert buffers.shared is not first
    assert buffers.kept_bytes == 16
    buffers.give_back(first)
    assert buffers.kept_bytes == 0
    buffers.keep_shared()
    assert buffers.shared is first


@pytest.mark.spec("NET-20")
def test_only_so_many_shared_buffers_may_be_kept() -> None:
    buffers = Buffers(shared_bytes=16, lent_max=2)
    kept = [buffers.keep_shared() for _ in range(3)]
    assert kept[0] is not None
    assert kept[1] is not None
    assert kept[2] is None
    buffers.give_back(kept[0])
    assert buffers.keep_shared() is not None


def test_spare_buffers_do_not_pile_up() -> None:
    buffers = Buffers(shared_bytes=16)
    kept = [buffers.keep_shared() for _ in range(20)]
    for buffer in kept:
        assert buffer is not None
        buffers.give_back(buffer)
    assert len(buffers._spare) == SPARE_MAX


def test_keeping_a_shared_buffer_costs_all_of_it_and_a_copy_only_its_size() -> None:
    buffers = Buffers(shared_bytes=16, lent_max=1)
    assert buffers.cost_of_keeping(5) == 16
    assert buffers.cost_of_keeping(50) == 50
    buffers.keep_shared()
    assert buffers.cost_of_keeping(5) == 5

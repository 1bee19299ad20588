from __future__ import annotations

import pytest

from ottla.gateway.errors import HttpError
from ottla.gateway.instance_table import InstanceKey, InstanceTable
from ottla.gateway.limits import PendingBytes
from ottla.model.clock import MonoMs
from tests.fakes.manual_time import ManualClock

KEY = InstanceKey("group", "a")


def test_an_instance_expires_when_no_request_uses_it() -> None:
    clock = ManualClock()
    table: InstanceTable[str] = InstanceTable(2, 1_000)
    table.add(KEY, "first", clock.mono_ms())
    clock.ns += 900 * 10**6
    with table.use(KEY, clock) as instance:
        assert instance == "first"
        assert table.remove_expired(MonoMs(5_000)) == {}, "a running request keeps it"
        clock.ns += 5_000 * 10**6
    assert table.remove_expired(MonoMs(6_899)) == {}
    assert table.remove_expired(MonoMs(6_900)) == {KEY: "first"}
    with pytest.raises(HttpError, match="'a' of group 'group'") as refused, table.use(KEY, clock):
        pass
    assert refused.value.code == 40403


def test_a_name_is_taken_once_in_each_group() -> None:
    table: InstanceTable[str] = InstanceTable(5, 1_000)
    table.add(KEY, "first", MonoMs(0))
    table.add(InstanceKey("other", "a"), "second", MonoMs(0))
    with pytest.raises(HttpError, match="already exists") as refused:
        table.add(KEY, "third", MonoMs(0))
    assert refused.value.code == 40902
    table.discard(KEY, "another of that name")
    assert table.remove(KEY) == "first"
    table.add(KEY, "fourth", MonoMs(0))
    assert sorted(table.all()) == ["fourth", "second"]


def test_there_is_a_limit_to_instances() -> None:
    table: InstanceTable[str] = InstanceTable(1, 1_000)
    table.add(KEY, "first", MonoMs(0))
    with pytest.raises(HttpError, match="--max-consumers") as refused:
        table.add(InstanceKey("group", "b"), "second", MonoMs(0))
    assert (refused.value.status, refused.value.retry_after_s) == (503, 5)
    assert len(table) == 1


def test_pending_bytes_are_bounded() -> None:
    pending = PendingBytes(100)
    assert pending.reserve(60)
    assert not pending.reserve(41)
    pending.add(50)  # a reply: it exists already
    assert (pending.count, pending.is_full) == (110, True)
    pending.release(50)
    assert not pending.is_full

"""The parts of the memory that clients may fill."""

from __future__ import annotations

import pytest

from ottla.broker.memory import memory_shares
from ottla.config.broker import BrokerConfig

GIB = 1 << 30
MIB = 1 << 20


def test_together_they_are_less_than_the_memory() -> None:
    shares = memory_shares(BrokerConfig(), 2 * GIB)
    assert shares.requests == GIB // 2
    assert sum(shares) <= 2 * GIB * 13 // 16


def test_on_a_large_machine_they_do_not_grow_for_ever() -> None:
    shares = memory_shares(BrokerConfig(), 1024 * GIB)
    assert (shares.requests, shares.replies, shares.groups) == (800 * MIB, GIB, GIB // 2)


@pytest.mark.spec("CFG-011")
def test_the_settings_win_over_what_the_machine_has() -> None:
    assert memory_shares(BrokerConfig(memory_limit_bytes=GIB), 8 * GIB).requests == GIB // 4
    own = BrokerConfig.parse({"queued.max.request.bytes": str(3 * GIB)})
    assert memory_shares(own, 8 * GIB).requests == 3 * GIB


def test_the_largest_request_fits_on_the_smallest_machine() -> None:
    assert memory_shares(BrokerConfig(), 128 * MIB).requests == 100 * MIB

"""Who may take how many of the process's file descriptors."""

from __future__ import annotations

import pytest

from ottla.broker.descriptors import (
    LOG_FILES_MAX,
    OTHER_MAX,
    RESERVE_MAX,
    DescriptorShares,
    descriptor_shares,
)
from ottla.net.limits import UNLIMITED
from ottla.replica.flush_loop import FILES_AT_ONCE


@pytest.mark.parametrize("limit", [64, 256, 1_024, 4_096, 20_000, 1_048_576])
def test_all_shares_together_are_what_the_process_may_open(limit: int) -> None:
    shares = descriptor_shares(limit)
    assert sum(shares) == limit
    assert shares.connections >= limit // 4
    assert shares.reserve <= shares.other // 2


def test_a_large_limit_goes_to_connections() -> None:
    assert descriptor_shares(16_000) == DescriptorShares(
        LOG_FILES_MAX, FILES_AT_ONCE, OTHER_MAX, 1_000, 12_000
    )
    assert descriptor_shares(16_000).reserve == RESERVE_MAX


def test_a_process_without_a_limit_may_have_as_many_connections_as_there_can_be() -> None:
    assert descriptor_shares(-1).connections > UNLIMITED // 2

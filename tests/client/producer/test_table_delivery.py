"""The outcome of a whole table."""

from __future__ import annotations

import pytest

from ottla.client.producer.table_delivery import SentRange, TableDelivery
from tests.client.producer.rig import batch


@pytest.mark.real_loop
async def test_a_table_is_done_when_all_its_batches_are() -> None:
    first, whole, parts = batch(b"a"), batch(b"b", b"c"), [batch(b"b"), batch(b"c")]
    delivery = TableDelivery([first, whole])
    assert len(delivery) == 3
    first.succeed(10, -1)
    whole.split_into(parts)
    parts[0].succeed(20, -1)
    assert not delivery.done()
    with pytest.raises(TimeoutError):
        delivery.result(0.001)
    parts[1].succeed(21, -1)
    assert delivery.done()
    expected = [SentRange("t", 0, 10, 1), SentRange("t", 0, 20, 1), SentRange("t", 0, 21, 1)]
    assert delivery.result(0) == expected
    assert delivery.exception(0) is None
    assert await delivery == expected


def test_the_first_failure_is_raised() -> None:
    first, second = batch(), batch()
    delivery = TableDelivery([first, second])
    first.succeed(0, -1)
    second.fail(ValueError("lost"))
    assert isinstance(delivery.exception(0), ValueError)
    with pytest.raises(ValueError, match="lost"):
        delivery.result(0)

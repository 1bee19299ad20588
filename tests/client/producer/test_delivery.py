"""The future of one record."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ottla.client.producer.delivery import Delivery, failed_delivery
from tests.client.producer.rig import TP, batch


@pytest.mark.spec("PRD-03")
def test_a_result_is_waited_for() -> None:
    made = batch(b"a", b"b")
    delivery = Delivery.of(made, 1)
    assert not delivery.done()
    threading.Thread(target=made.succeed, args=(5, -1)).start()
    assert delivery.result(60).offset == 6
    assert delivery.exception(0) is None
    assert delivery.done()
    assert "offset=6" in repr(delivery)


@pytest.mark.spec("PRD-03", "PRD-13")
def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    delivery = failed_delivery(TP, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        delivery.result(0)
    assert isinstance(delivery.exception(0), ValueError)
    assert "no" in repr(delivery)


def test_waiting_may_take_too_long() -> None:
    delivery = Delivery.of(batch(), 0)
    with pytest.raises(TimeoutError, match="no acknowledgement of a record to t-0"):
        delivery.result(0.001)
    assert "pending" in repr(delivery)


def test_a_callback_that_comes_late_is_called_at_once_and_one_that_fails_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, called = batch(), list[Delivery]()
    delivery = Delivery.of(made, 0)
    delivery.add_done_callback(lambda done: 1 // 0)
    delivery.add_done_callback(called.append)
    made.succeed(0, -1)
    delivery.add_done_callback(called.append)
    assert called == [delivery, delivery]
    assert "delivery callback failed for a record to t-0" in caplog.text


@pytest.mark.real_loop
async def test_it_can_be_awaited_before_and_after_its_outcome_and_across_a_split() -> None:
    whole, parts = batch(b"a", b"b"), [batch(b"a"), batch(b"b")]
    loop = asyncio.get_running_loop()
    loop.call_soon(whole.split_into, parts)
    loop.call_later(0.001, parts[1].succeed, 9, -1)
    delivery = Delivery.of(whole, 1)
    assert (await delivery).offset == 9
    assert (await delivery).offset == 9

"""Questions that wait for their answers."""

from __future__ import annotations

import pytest

from ottla.controller.runtime.pending_requests import PendingRequests
from ottla.model.errors import ErrorCode, KafkaError


async def test_an_answer_reaches_who_asked_under_that_number() -> None:
    pending = PendingRequests()
    first, one = pending.open()
    second, two = pending.open()
    pending.reply(second, "two")
    pending.reply(first, "one")
    assert (await one, await two) == ("one", "two")


async def test_an_answer_nobody_waits_for_is_dropped() -> None:
    pending = PendingRequests()
    number, _ = pending.open()
    pending.close(number)
    pending.reply(number, "late")
    pending.reply(99, "never asked")


@pytest.mark.spec("CTL-28")
async def test_everybody_who_waits_is_told_to_ask_another_controller() -> None:
    pending = PendingRequests()
    _, waiting = pending.open()
    pending.fail_all()
    with pytest.raises(KafkaError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_controller

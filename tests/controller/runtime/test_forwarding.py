"""Requests to the active controller: retried while it moves, within the timeout."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.controller.runtime.forwarding import ENVELOPE, ForwardedRequest, Forwarder
from ottla.model.errors import ErrorCode as E
from ottla.model.errors import KafkaError
from ottla.protocol.wire import Fields
from tests.fakes.virtual_loop import LoopClock

REQUEST = ForwardedRequest(b"frame", "User:alice", "10.0.0.1")


class Scripted:
    """The active controller: each answer is an error to raise or a code to reply with."""

    def __init__(self, *answers: Exception | E) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, Fields]] = []

    async def ask(self, key: int, fields: Fields, timeout_ms: int, purpose: str) -> Any:
        self.asked.append((key, fields))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(error_code=answer, response_data=b"reply")


async def test_a_request_waits_for_a_controller_that_can_be_reached_and_is_active() -> None:
    nobody = KafkaError(E.not_controller)
    controller = Scripted(nobody, ConnectionError(), TimeoutError(), E.not_controller, E.none)
    reply = await Forwarder(controller, LoopClock()).forward(REQUEST, 5_000)
    assert reply == b"reply"
    assert len(controller.asked) == 5
    key, fields = controller.asked[0]
    assert key == ENVELOPE
    assert fields["request_data"] == b"frame"
    assert fields["client_host_address"] == b"\x0a\0\0\1"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (KafkaError(E.not_controller), E.not_controller),
        (E.not_controller, E.not_controller),
        (ConnectionError(), E.request_timed_out),
        (E.cluster_authorization_failed, E.cluster_authorization_failed),
        (KafkaError(E.unknown_server_error), E.unknown_server_error),
    ],
)
async def test_the_client_is_told_why_within_its_timeout(answer: Any, code: E) -> None:
    clock = LoopClock()
    with pytest.raises(KafkaError) as refused:
        await Forwarder(Scripted(answer), clock).forward(REQUEST, 5_000)
    assert refused.value.code is code
    assert clock.mono_ms() <= 8_000

"""The exceptions of the clients say what a program may do about them."""

from __future__ import annotations

import pytest

import ottla
from ottla.client.errors import refusal


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ottla.ErrorCode.producer_fenced, ottla.Fenced),
        (ottla.ErrorCode.invalid_producer_epoch, ottla.Fenced),
        (ottla.ErrorCode.transaction_abortable, ottla.AbortNeeded),
        (ottla.ErrorCode.message_too_large, ottla.RecordTooLarge),
        (ottla.ErrorCode.not_leader_or_follower, ottla.KafkaError),
    ],
)
def test_a_code_has_its_class(code: ottla.ErrorCode, kind: type[ottla.KafkaError]) -> None:
    error = refusal(code, "why")
    assert type(error) is kind
    assert error.code is code
    assert str(error) == "why"


def test_an_error_says_whether_trying_again_may_help() -> None:
    assert refusal(ottla.ErrorCode.not_leader_or_follower).retriable
    assert not refusal(ottla.ErrorCode.topic_authorization_failed).retriable
    assert not ottla.UnsupportedVersion("too old").retriable

from __future__ import annotations

from ottla.model.errors import ErrorCode, KafkaError


def test_a_refusal_carries_kafkas_code_and_a_message_for_the_client() -> None:
    refusal = KafkaError(ErrorCode.invalid_config, "retention.ms: expected a number")
    assert (refusal.code, refusal.code.value) == (ErrorCode.invalid_config, 40)
    assert (refusal.message, str(refusal)) == ("retention.ms: expected a number",) * 2


def test_without_a_message_the_code_speaks_and_the_client_hears_no_text() -> None:
    refusal = KafkaError(ErrorCode.not_controller)
    assert refusal.message is None
    assert str(refusal) == "not_controller"

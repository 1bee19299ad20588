"""Regular expressions of subscriptions."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.patterns import resolve
from ottla.model.errors import ErrorCode, KafkaError


def test_a_pattern_matches_from_end_to_end() -> None:
    names = ["orders", "orders-eu", "my-orders"]
    assert resolve(["orders.*", "o"], names) == {
        "orders.*": frozenset({"orders", "orders-eu"}),
        "o": frozenset(),
    }


@pytest.mark.parametrize("pattern", ["(", "[", "a**", r"(a)\1", "(?=a)", "((a{100}){100}){100}"])
def test_what_is_no_pattern_or_would_take_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        resolve([pattern], ["t"])
    assert refusal.value.code is ErrorCode.invalid_regular_expression
    assert pattern in str(refusal.value)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*.*=.*", "a{0,200}a{200}b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """A backtracking engine would not come back within a lifetime."""
    assert resolve([pattern], ["a" * 249] * 100) == {pattern: frozenset()}

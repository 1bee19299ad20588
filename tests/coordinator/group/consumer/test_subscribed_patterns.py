"""Regular expressions of subscriptions."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.service import resolve
from ottla.model.errors import ErrorCode, KafkaError


def test_a_pattern_matches_from_end_to_end() -> None:
    names = ["orders", "orders-eu", "my-orders"]
    assert resolve(["orders.*", "o"], names) == {
        "orders.*": frozenset({"orders", "orders-eu"}),
        "o": frozenset(),
    }


def test_what_is_no_pattern_is_refused_by_the_name_of_its_field() -> None:
    with pytest.raises(KafkaError) as refusal:
        resolve(["("], ["t"])
    assert refusal.value.code is ErrorCode.invalid_regular_expression
    assert str(refusal.value).startswith("SubscribedTopicRegex `(` is not a valid")

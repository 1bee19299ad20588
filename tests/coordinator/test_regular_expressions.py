"""Regular expressions that came over the wire."""

from __future__ import annotations

import pytest

from ottla.coordinator.regular_expressions import compiled
from ottla.model.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("pattern", ["(", "[", "a**", r"(a)\1", "(?=a)", "((a{100}){100}){100}"])
def test_what_is_no_pattern_or_would_take_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        compiled(pattern)
    assert refusal.value.code is ErrorCode.invalid_regular_expression
    assert pattern in str(refusal.value)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*.*=.*", "a{0,200}a{200}b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """A backtracking engine would not come back within a lifetime."""
    found = compiled(pattern)
    assert not any(found.fullmatch("a" * 249) for _ in range(100))

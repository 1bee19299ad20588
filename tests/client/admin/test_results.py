from __future__ import annotations

import pytest

from ottla.client.admin import Outcomes


def test_results_and_failures_are_told_apart() -> None:
    broken = ValueError("broken")
    outcomes: Outcomes[str, int] = Outcomes({"a": 1, "b": broken})
    assert outcomes.succeeded == {"a": 1}
    assert outcomes.failed == {"b": broken}
    with pytest.raises(ValueError, match="broken"):
        outcomes.all()


def test_all_and_one_give_plain_results() -> None:
    outcomes: Outcomes[str, int | None] = Outcomes({"a": None})
    assert outcomes.all() == {"a": None}
    assert outcomes.one() is None
    with pytest.raises(ValueError, match="unpack"):
        Outcomes[str, int]({"a": 1, "b": 2}).one()

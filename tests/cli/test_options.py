from __future__ import annotations

import pytest

from ottla.cli.options import pairs
from ottla.model.errors import UserError


def test_the_last_of_a_key_wins_and_a_value_may_hold_an_equals_sign() -> None:
    assert pairs("--config", ["a=1", "b=x=y", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}
    assert pairs("--config", None) == {}


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_what_is_no_pair_names_the_option(text: str) -> None:
    with pytest.raises(UserError, match=r"--config .*: expected key=value"):
        pairs("--config", [text])

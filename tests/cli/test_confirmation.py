from __future__ import annotations

from io import StringIO

import pytest

from ottla.cli.confirmation import confirm, require_terminal
from ottla.model.errors import UserError


@pytest.mark.parametrize(
    ("typed", "is_yes"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)]
)
def test_anything_but_a_yes_is_a_no(typed: str, is_yes: bool) -> None:
    assert confirm("delete them?", StringIO(typed)) is is_yes


def test_a_script_has_to_say_yes_beforehand() -> None:
    with pytest.raises(UserError, match="use --yes"):
        require_terminal("topics delete", StringIO("y"))

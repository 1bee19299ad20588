"""The `ottla` program inside a test: what it was given, what it printed, how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias


class Ran(NamedTuple):
    """One run of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def failed(self, code: int, *words: str) -> None:
        """It said what is wrong in one line, without a traceback."""
        assert self.code == code, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, (word, self.err)


Run: TypeAlias = Callable[..., Ran]

"""kio, imported without Hypothesis.

Where Hypothesis is installed kio imports it to register strategies: 0.2 to 0.3 CPU seconds of every
process that imports us, and Spark starts dozens of Python processes. A program that has imported
Hypothesis keeps the strategies.

Only the importing thread is denied: another may import Hypothesis at the same moment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import get_ident
from types import ModuleType
from typing import Final

HYPOTHESIS: Final = "hypothesis"


class Denial:
    """Finds Hypothesis missing, for one thread."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == HYPOTHESIS and get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {HYPOTHESIS!r}", name=name)


def import_kio() -> None:
    """Import what of kio asks for Hypothesis, if nobody has yet."""
    denial = Denial()
    sys.meta_path.insert(0, denial)
    try:
        import kio.static.primitive  # noqa: F401
    finally:
        sys.meta_path.remove(denial)


if HYPOTHESIS not in sys.modules:
    import_kio()

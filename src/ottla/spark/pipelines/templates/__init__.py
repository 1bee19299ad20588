"""Ready-made pipeline files, one for each job that everybody needs.

`ottla pipeline list-templates` shows them, `ottla pipeline new NAME` writes one to begin with. Each
begins with a comment whose first line says what it is for, and is an ordinary pipeline.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ottla.model.errors import UserError

HERE: Final = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def text(name: str) -> str:
    """A template's file."""
    path = HERE / f"{name}.yaml"
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        advice = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"{name}: no such template{advice} (available: {', '.join(names())})")
    return path.read_text()


def purpose(name: str) -> str:
    """What a template is for, in one line."""
    return text(name).partition("\n")[0].removeprefix("#").strip()

"""Asking before something is destroyed.

Owns: when a command asks, and what counts as a yes. Never: knows what is destroyed; commands show
that first.
"""

from __future__ import annotations

import sys
from typing import Annotated, Final, TextIO

import typer

from ottla.model.errors import UserError

YES: Final = ("y", "yes")

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
]


def require_terminal(command: str, stdin: TextIO | None = None) -> None:
    """Refuse where nobody can be asked: a script has to say --yes."""
    if not (stdin or sys.stdin).isatty():
        raise UserError(
            f"{command}: cannot ask for confirmation without a terminal; use --yes to proceed, "
            "or --dry-run to see what would be deleted"
        )


def confirm(question: str, stdin: TextIO | None = None) -> bool:
    """Ask on the terminal; anything but a yes is a no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return (stdin or sys.stdin).readline().strip().lower() in YES

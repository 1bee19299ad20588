"""Where a new password comes from: a terminal, a file, or nowhere, then one is made.

Never an argument of the command: other users of the machine could read it there.
"""

from __future__ import annotations

import getpass
import secrets
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.model.errors import UserError

GENERATED_BYTES: Final = 18

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file", metavar="FILE", help="Read the password from this file; - is stdin."
    ),
]


def new_password(file: Path | None) -> str:
    """The content of the file without its line end, or what is typed twice on the terminal."""
    if file is not None:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"--password-file {file}: {error.strerror}") from None
        password = text.rstrip("\r\n")
    elif sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise UserError("the two passwords differ")
    else:
        raise UserError("no password: use --password-file FILE, or run it on a terminal")
    if not password:
        raise UserError("the password is empty")
    return password


def generated_password() -> str:
    return secrets.token_urlsafe(GENERATED_BYTES)

"""`ottla profile remove`: forget a profile."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.completion import profile_names
from ottla.cli.profile.profiles import file_path, load, save


def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name the profile.", autocompletion=profile_names)
    ],
) -> int:
    """Remove a profile; if it was in use, none is afterwards.

    Examples:
      ottla profile remove staging
    """
    path = file_path(os.environ)
    save(path, load(path).removed(name))
    print(f"removed profile {name}")
    return 0

"""`ottla users remove`: take the credentials of a user away."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.confirmation import Yes, agreed, require_terminal
from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.client.admin.scram_users import ScramDeletion


def remove(
    user: Annotated[str, typer.Argument(metavar="USER", help="Name the user.")],
    *,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism", metavar="NAME", help="Remove only this credential; default: all."
        ),
    ] = None,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete the SCRAM credentials of a user; connections that exist stay.

    Examples:
      ottla users remove alice
      ottla users remove alice --mechanism SCRAM-SHA-256 --yes
    """
    if not yes:
        require_terminal("users remove")
        if not agreed(f"Delete the credentials of {user}?"):
            return 1
    with admin_connection(bootstrap) as admin:
        stored = admin.describe_user_scram_credentials([user]).one()
        names = [mechanism] if mechanism is not None else sorted(stored)
        admin.alter_user_scram_credentials([ScramDeletion(user, name) for name in names]).all()
    print(f"deleted the credentials of {user}: {', '.join(names)}")
    return 0

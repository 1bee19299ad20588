"""`ottla users list`, `add` and `remove`: who may log in by SCRAM."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.confirmation import Yes, confirm, require_terminal
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin.scram_users import ScramDeletion, ScramUpsertion
from ottla.model.errors import UserError


def list_(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """List users with SCRAM credentials; passwords are not stored anywhere.

    Examples:
      ottla users list
      ottla users list --json
    """
    with admin_connection(bootstrap) as admin:
        users = admin.describe_user_scram_credentials().all()
    rows = [
        (user, mechanism, iterations)
        for user, credentials in sorted(users.items())
        for mechanism, iterations in sorted(credentials.items())
    ]
    show(Table("users", ("user", "mechanism", "iterations"), rows), as_json=as_json)
    return 0


PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file", metavar="FILE", help="Read the password from this file; - is stdin."
    ),
]
"""Never the password itself: other users of the machine could read a command's arguments."""
Mechanism = Annotated[
    str, typer.Option("--mechanism", metavar="NAME", help="Use SCRAM-SHA-256 or SCRAM-SHA-512.")
]


def add(
    user: Annotated[str, typer.Argument(metavar="USER", help="Name the user.")],
    *,
    mechanism: Mechanism = "SCRAM-SHA-512",
    password_file: PasswordFile = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Write to the store of a broker that is stopped.")
    ] = False,
    server_config: Annotated[
        Path | None,
        typer.Option("--server-config", metavar="FILE", help="Read the broker's settings here."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a broker setting; repeatable."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Set the SCRAM credential of a user; an existing one is replaced.

    Examples:
      ottla users add alice
      ottla users add alice --mechanism SCRAM-SHA-256 --password-file alice.secret
      ottla users add admin --offline --server-config server.properties
    """
    if not user:
        raise UserError("USER: expected a name")
    if not offline and (server_config or set_):
        raise UserError("--server-config and --set: only with --offline")
    password = new_password(password_file)
    if offline:
        from ottla.cli.users.offline import set_credential
        from ottla.config.properties import load

        config = load(server_config, environment=os.environ, sets=set_ or ()).config
        set_credential(config, user, password, mechanism)
    else:
        with admin_connection(bootstrap) as admin:
            change = ScramUpsertion(user, password, mechanism)
            admin.alter_user_scram_credentials([change]).all()
    print(f"set the {mechanism} credential of {user}")
    return 0


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
        if not confirm(f"Delete the credentials of {user}?"):
            return 1
    with admin_connection(bootstrap) as admin:
        stored = admin.describe_user_scram_credentials([user]).one()
        names = [mechanism] if mechanism is not None else sorted(stored)
        admin.alter_user_scram_credentials([ScramDeletion(user, name) for name in names]).all()
    print(f"deleted the credentials of {user}: {', '.join(names)}")
    return 0

"""`ottla users add`: give a user a password, or another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.users.password import PasswordFile, new_password
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.model.errors import UserError

Mechanism = Annotated[
    str, typer.Option("--mechanism", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512.")
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

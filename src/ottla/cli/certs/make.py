"""`ottla certs make`: a development authority, a broker's and clients' certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.users.offline import generated_password
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.security.tls.authority import local_hosts, make_directory, write_private

EXAMPLE = """\
# broker
ssl.keystore.type=PEM
ssl.keystore.location={directory}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem
"""


def make(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Write the files here.")],
    *,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="Add a host name of the broker; repeatable."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Make a client's certificate; repeatable."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the files of DIR.")] = False,
) -> int:
    """Make certificates for development, as PEM and PKCS12.

    Examples:
      ottla certs make ./certs
      ottla certs make ./certs --host broker1.example.com --client alice --client bob
    """
    if (directory / "ca.key").exists() and not force:
        raise UserError(
            f"{directory}: already contains a certificate authority; use --force to replace it"
        )
    password = generated_password()
    hosts = list(dict.fromkeys([*(host or ()), *local_hosts()]))
    now_s = SystemClock().wall_ms() / 1e3
    files = make_directory(
        directory, now_s, hosts=hosts, clients=client or ["client"], password=password
    )
    secret = directory / "store.password"
    write_private(secret, password.encode() + b"\n")
    for path in (*files, secret):
        print(path)
    print(EXAMPLE.format(directory=directory), end="")
    return 0

"""`ottla gateway`: serves topics over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import ssl
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap, Properties, pairs
from ottla.cli.profile.cluster import client_config
from ottla.cli.profile.profiles import check_properties, usable
from ottla.config.client import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError

if TYPE_CHECKING:
    from ottla.gateway.gateway import ClientSettings, Listen
    from ottla.gateway.limits import Limits

DEFAULT_LISTEN: Final = "127.0.0.1:8082"
LOG_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
MAX_PORT: Final = 65_535
NAME_BYTES: Final = 8
PENDING_BODIES: Final = 8
"""Bodies of full size that may be in memory together."""

ListenAt = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Listen here; port 0 is a free port.")
]
Certificate = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
]
PrivateKey = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read the certificate's key from this file.")
]
HostNames = Annotated[
    list[str] | None,
    typer.Option("--host-name", metavar="NAME", help="Accept this Host on loopback; repeatable."),
]
MaxBody = Annotated[
    int, typer.Option("--max-body-mib", min=1, max=1_024, help="Limit a request's body, in MiB.")
]
MaxConnections = Annotated[int, typer.Option(min=1, max=65_536, help="Limit the connections.")]
MaxConsumers = Annotated[int, typer.Option(min=1, max=65_536, help="Limit consumer instances.")]
InstanceTimeout = Annotated[
    int, typer.Option(min=1, max=86_400, help="Expire instances without a request for so many s.")
]


def gateway(  # noqa: PLR0913 - a command's options are its parameters
    *,
    listen: ListenAt = DEFAULT_LISTEN,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    host_names: HostNames = None,
    max_body: MaxBody = 8,
    max_connections: MaxConnections = 256,
    max_consumers: MaxConsumers = 100,
    instance_timeout: InstanceTimeout = 300,
    properties: Properties = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Serve topics over HTTP, for programs without a Kafka client.

    The API is version 2 of Confluent's REST Proxy. There is no login: everybody who reaches the
    address reads and writes with the rights of the gateway's own client. It listens on loopback
    unless --listen names another address. SIGTERM or Ctrl-C stops it: running requests are
    answered, consumers leave their groups.

    Examples:
      ottla gateway
      ottla gateway -b broker1:9093 --command-config client.properties
      ottla gateway --listen 10.0.0.5:8443 --certificate cert.pem --private-key key.pem
      ottla gateway --max-body-mib 1 --instance-timeout 60 --set compression.type=zstd
    """
    _require_h11()
    from ottla.gateway.gateway import Listen
    from ottla.gateway.limits import MIB, Limits

    host, port = parse_listen(listen)
    names = frozenset(name.lower() for name in host_names or ())
    place = Listen(host, port, _tls(certificate, private_key), names)
    limits = Limits(
        max_body_bytes=max_body * MIB,
        max_pending_bytes=PENDING_BODIES * max_body * MIB,
        max_connections=max_connections,
        max_consumers=max_consumers,
        instance_timeout_ms=instance_timeout * 1_000,
    )
    clients = _client_settings(bootstrap, pairs("--set", properties))
    with admin_connection(bootstrap):
        pass  # a broker out of reach is said at once
    logging.basicConfig(level=logging.INFO, format=LOG_LINE, stream=sys.stderr)
    asyncio.run(_serve(clients, place, limits))
    return 0


async def _serve(clients: ClientSettings, listen: Listen, limits: Limits) -> None:
    from ottla.gateway.gateway import open_gateway

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    names = partial(secrets.token_hex, NAME_BYTES)
    async with open_gateway(clients, listen, limits, SystemClock(), names) as url:
        if not listen.is_loopback:
            print(
                f"ottla: warning: no login: everybody who reaches {url} reads and writes with the "
                "rights of this gateway's client",
                file=sys.stderr,
            )
        print(f"gateway ready on {url}", flush=True)
        await stop.wait()


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port; both must be named, as 0.0.0.0:8082 is for every address."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise UserError(
            f"--listen {text!r}: expected HOST:PORT such as {DEFAULT_LISTEN}, or 0.0.0.0:8082 for "
            "every address of this machine"
        )
    return host, int(port)


def _tls(certificate: Path | None, private_key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and private_key is None:
        return None
    if certificate is None or private_key is None:
        raise UserError("--certificate and --private-key: give both, or none")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, private_key, _no_password)
    except OSError as error:  # ssl.SSLError is one
        raise UserError(
            f"--certificate {certificate}, --private-key {private_key}: {error}"
        ) from None
    return context


def _no_password() -> str:
    raise UserError("--private-key: the key is encrypted; expected one without a password")


def _client_settings(bootstrap: str, sets: Mapping[str, str]) -> ClientSettings:
    """The settings of the cluster, then those of --set, for each kind of client that has them."""
    from ottla.gateway.gateway import ClientSettings

    check_properties(sets)

    def settings(kind: type[ClientConfig]) -> dict[str, str]:
        chosen = client_config(bootstrap, kind) | usable(sets, kind)
        kind.parse(chosen)  # a mistake is said before anything is opened
        return chosen

    return ClientSettings(settings(AdminConfig), settings(ProducerConfig), settings(ConsumerConfig))


def _require_h11() -> None:
    if find_spec("h11") is None:
        raise UserError("gateway requires h11: pip install 'ottla[gateway]'")

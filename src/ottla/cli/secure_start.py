"""`ottla serve --secure`: a broker that asks everyone to log in, in one command.

Owns: the directory with certificates, the administrator's password and the client configuration,
made at the first start and used by later ones. Never prints the password but once, on a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ottla.cli.users.offline import generated_password, set_credential
from ottla.config.properties import load
from ottla.model.clock import SystemClock
from ottla.security.tls.authority import LOCAL, make_directory, write_private

ADMIN: Final = "admin"
MECHANISM: Final = "SCRAM-SHA-512"
CLIENT_FILE: Final = "client.properties"


def secure_settings(directory: Path) -> dict[str, str]:
    """The settings of a secure broker; others may stand over them."""
    return {
        "listeners": "SASL_SSL://localhost:9092",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN}",
    }


def prepare(directory: Path, file: Path | None, sets: list[str]) -> list[str]:
    """Make what is missing; the settings to start with, weakest first."""
    secure = [f"{key}={value}" for key, value in secure_settings(directory).items()]
    if (directory / CLIENT_FILE).exists():
        return secure
    password = generated_password()
    hosts = list(dict.fromkeys([*LOCAL, os.uname().nodename]))
    now_s = SystemClock().wall_ms() / 1e3
    make_directory(directory, now_s, hosts=hosts, clients=[ADMIN], password=generated_password())
    config = load(file, environment=os.environ, sets=[*secure, *sets]).config
    set_credential(config, ADMIN, password, MECHANISM)
    text = client_properties(directory.resolve(), password, config.listeners[0])
    write_private(directory / CLIENT_FILE, text.encode())
    _announce(directory, password)
    return secure


def client_properties(directory: Path, password: str, listener: str) -> str:
    server = listener.partition("://")[2]
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    values: Mapping[str, str] = {
        "bootstrap.servers": server if not server.startswith(":") else f"localhost{server}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f'{module} required username="{ADMIN}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _announce(directory: Path, password: str) -> None:
    client = directory / CLIENT_FILE
    print(
        f"ottla: user {ADMIN} may do everything; clients: --command-config {client}",
        file=sys.stderr,
    )
    if sys.stderr.isatty():
        print(f"ottla: password of {ADMIN}, shown once: {password}", file=sys.stderr)

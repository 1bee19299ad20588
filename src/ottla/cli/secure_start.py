"""`ottla serve --secure`: a broker that asks everyone to log in, in one command.

Owns: the directory with certificates, the administrator's password and the client configuration,
made at the first start and used by later ones, also with a data directory that is new. Never prints
the password but once, on a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ottla.cli.users.offline import generated_password, set_credential
from ottla.config.broker import BrokerConfig
from ottla.config.listeners import EVERY_ADDRESS, Endpoint, Listeners
from ottla.config.properties import load, read_file
from ottla.model.clock import SystemClock
from ottla.security.sasl import jaas
from ottla.security.tls.authority import local_hosts, make_directory, write_private
from ottla.store.sqlite_database import FILE_NAME

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
    config = load(file, environment=os.environ, sets=[*secure, *sets]).config
    if (directory / CLIENT_FILE).exists():
        _add_admin_to_new_store(config, directory / CLIENT_FILE)
        return secure
    password = generated_password()
    now_s = SystemClock().wall_ms() / 1e3
    hosts = certificate_hosts(config)
    make_directory(directory, now_s, hosts=hosts, clients=[ADMIN], password=generated_password())
    set_credential(config, ADMIN, password, MECHANISM)
    text = client_properties(directory.resolve(), password, client_endpoint(config))
    write_private(directory / CLIENT_FILE, text.encode())
    _announce(directory, password)
    return secure


def certificate_hosts(config: BrokerConfig) -> list[str]:
    """The names under which clients may reach the broker."""
    listeners = Listeners.of(config)
    endpoints = (*listeners.bound, *listeners.advertised)
    named = (each.host.partition("%")[0] for each in endpoints if not _is_every_address(each))
    return list(dict.fromkeys([*local_hosts(), *named]))


def client_endpoint(config: BrokerConfig) -> Endpoint:
    """Where a client on this machine reaches the listener that asks for logins and encrypts."""
    listeners = Listeners.of(config)
    endpoint = next(each for each in listeners.advertised if each.name == listeners.inter_broker)
    return endpoint._replace(host="localhost") if _is_every_address(endpoint) else endpoint


def client_properties(directory: Path, password: str, endpoint: Endpoint) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    values: Mapping[str, str] = {
        "bootstrap.servers": str(endpoint).partition("://")[2],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f'{module} required username="{ADMIN}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _is_every_address(endpoint: Endpoint) -> bool:
    return not endpoint.host or endpoint.host in EVERY_ADDRESS


def _add_admin_to_new_store(config: BrokerConfig, client_file: Path) -> None:
    """With the data, users are removed; the client file still has the administrator."""
    store_file = Path(config.data_dirs[0]) / FILE_NAME
    if config.zookeeper_connect is not None or store_file.exists():
        return
    text = read_file(client_file).get("sasl.jaas.config", "")
    options = jaas.parse_line(text, f"{client_file}: sasl.jaas.config")[0].options
    if options.get("username") == ADMIN and options.get("password"):
        set_credential(config, ADMIN, options["password"], MECHANISM)


def _announce(directory: Path, password: str) -> None:
    client = directory / CLIENT_FILE
    print(
        f"ottla: user {ADMIN} may do everything; clients: --command-config {client}",
        file=sys.stderr,
    )
    if sys.stderr.isatty():
        print(f"ottla: password of {ADMIN}, shown once: {password}", file=sys.stderr)

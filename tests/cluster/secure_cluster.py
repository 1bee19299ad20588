"""Security of three brokers: SASL_SSL between them and to clients, a login at ZooKeeper.

Owns: certificates for the brokers' addresses, the users, and the settings with which brokers and
clients use them. Never: starts anything.

Brokers and clients log in by SCRAM-SHA-512. Their first users are written to ZooKeeper before the
first start, with the command that an operator has for that.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from ottla.security.tls.authority import issue, make_authority
from tests.cluster.load import Bootstrap
from tests.raw_requests import Line
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble

DIGEST: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISM: Final = "SCRAM-SHA-512"
BROKER: Final = "broker"
CLIENT: Final = "client"
PASSWORDS: Final = {BROKER: "secret-of-brokers", CLIENT: "secret-of-clients"}
ZOOKEEPER_PASSWORD: Final = "secret-at-zookeeper"
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36


class ClusterSecurity:
    """Certificates and passwords below a folder, for brokers at these hosts."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        now_s = time.time()
        authority = make_authority("authority of a test", now_s)
        broker = issue(authority, BROKER, now_s, hosts=tuple(hosts))
        self.authority = folder / "ca.pem"
        self.authority.write_bytes(authority.certificate_pem())
        self._key_store = folder / "broker.pem"
        self._key_store.write_bytes(broker.key_pem() + broker.certificate_pem())
        self._jaas = folder / "client.conf"
        login = f'{DIGEST} required username="kafka" password="{ZOOKEEPER_PASSWORD}";'
        self._jaas.write_text(f"Client {{ {login} }};\n")

    # Brokers

    @property
    def at_zookeeper(self) -> dict[str, str]:
        return {"java.security.auth.login.config": str(self._jaas), "zookeeper.set.acl": "true"}

    @property
    def of_listener(self) -> dict[str, str]:
        """For a listener SASL_SSL, whoever uses it."""
        user = f'username="{BROKER}" password="{PASSWORDS[BROKER]}"'
        users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required {user};",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
        }

    @property
    def of_brokers(self) -> dict[str, str]:
        """Everything behind logins: who has none may do nothing."""
        return {
            **self.at_zookeeper,
            **self.of_listener,
            "security.inter.broker.protocol": "SASL_SSL",
            **self.in_force,
        }

    @property
    def as_open_as_before(self) -> dict[str, str]:
        """Rules that let those without a login do everything, brokers among them."""
        return {**self.in_force, "super.users": f"User:{BROKER};User:{CLIENT};User:ANONYMOUS"}

    @property
    def in_force(self) -> dict[str, str]:
        """Rules that let nobody else do anything."""
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{BROKER};User:{CLIENT}",
        }

    def add_users(self, zookeeper: str) -> None:
        """Before the first start, in the metadata at this address."""
        config = self._folder / "server.properties"
        settings = {"zookeeper.connect": zookeeper, **self.at_zookeeper, "broker.id": "1"}
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        for name, password in PASSWORDS.items():
            subprocess.run(
                [
                    sys.executable, "-m", "ottla", "users", "add", name, "--offline",
                    "--server-config", config, "--mechanism", MECHANISM, "--password-file", "-",
                ],
                input=password, text=True, check=True, timeout=60,
            )  # fmt: skip

    # Clients

    @property
    def of_librdkafka(self) -> dict[str, Any]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": MECHANISM,
            "sasl.username": CLIENT,
            "sasl.password": PASSWORDS[CLIENT],
        }

    @property
    def of_kafka(self) -> dict[str, str]:
        """For Java's clients, and for ours."""
        user = f'username="{CLIENT}" password="{PASSWORDS[CLIENT]}"'
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f"{SCRAM} required {user};",
        }

    def bootstrap(self, addresses: Sequence[str]) -> Bootstrap:
        return Bootstrap(",".join(addresses), self.of_librdkafka)

    def line(self, address: str, timeout_s: float) -> Line:
        return SecureLine(address, timeout_s, self.authority)


class SecureLine(Line):
    """One connection to a broker over TLS, logged in by PLAIN."""

    def __init__(self, address: str, timeout_s: float, authority: Path) -> None:
        super().__init__(address, timeout_s)
        with ExitStack() as stack:
            stack.callback(lambda: self.socket.close())
            self._log_in(address.rpartition(":")[0], authority)
            stack.pop_all()  # it stays open

    def _log_in(self, host: str, authority: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        plain: socket.socket = self.socket
        self.socket = context.wrap_socket(plain, server_hostname=host)
        shaken = self.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        token = b"\0".join([b"", CLIENT.encode(), PASSWORDS[CLIENT].encode()])
        answer = self.ask(SASL_AUTHENTICATE, 2, auth_bytes=token)
        assert (int(shaken.error_code), int(answer.error_code)) == (0, 0), answer


@contextmanager
def guarded_ensemble(folder: Path, count: int = 3) -> Iterator[Ensemble]:
    """ZooKeeper servers at which brokers log in; who does not may look, and change nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    jaas = folder / "server.conf"
    jaas.write_text(f'Server {{ {DIGEST} required user_kafka="{ZOOKEEPER_PASSWORD}"; }};\n')
    more = "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
    options = [f"-Djava.security.auth.login.config={jaas}"]
    with zookeeper_ensemble(folder, count, more, options) as servers:
        yield Ensemble(servers)

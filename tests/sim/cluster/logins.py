"""Logins of brokers and clients in a simulated cluster: SASL without encryption.

Owns the users, their passwords, and the settings that make everybody log in. Sessions may end
soon, so that everybody logs in again in the middle of whatever happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from ottla.config.dynamic import DynamicConfig
from ottla.config.sasl import SaslClientSettings
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.security.sasl.client import ClientLogin
from ottla.security.sasl.scram import Credential, salted_password
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.registration import create_root_nodes
from ottla.store.memory import Ensemble, MemoryStore

PLAIN: Final = "PLAIN"
SCRAM: Final = "SCRAM-SHA-256"
BROKER, CLIENT = "broker", "client"
PASSWORDS: Final = {BROKER: "b-secret", CLIENT: "c-secret"}
ITERATIONS: Final = 4_096
SALT: Final = b"salt of the simulation"
MODULE: Final = "listener.name.sasl_plaintext"
PACKAGE: Final = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Logins:
    """How brokers and clients log in."""

    brokers: str = PLAIN
    clients: str = PLAIN
    session_ms: int = 0
    """After which everybody must have logged in again; 0: never."""

    @property
    def settings(self) -> dict[str, str]:
        own = f'required username="{BROKER}" password="{PASSWORDS[BROKER]}"'
        known = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
        return {
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
            "sasl.mechanism.inter.broker.protocol": self.brokers,
            "connections.max.reauth.ms": str(self.session_ms),
            f"{MODULE}.plain.sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule {own} {known};",
            f"{MODULE}.scram-sha-256.sasl.jaas.config": (
                f"{PACKAGE}.scram.ScramLoginModule {own};"
            ),
        }

    @property
    def options(self) -> dict[str, Any]:
        """Of `ottla.client`; with PLAIN, because its nonces for SCRAM cannot be repeated."""
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": PLAIN,
            "sasl_username": CLIENT,
            "sasl_password": PASSWORDS[CLIENT],
        }

    def of_client(self, clock: Clock, dice: Random) -> ClientLogin:
        settings = SaslClientSettings(
            sasl_mechanism=self.clients,
            sasl_username=CLIENT,
            sasl_password=PASSWORDS[CLIENT],
        )
        return ClientLogin(settings, clock, lambda: f"{dice.getrandbits(128):032x}")


async def write_users(ensemble: Ensemble) -> None:
    """Before the first broker starts, as `ottla users` does it offline."""
    store = MemoryStore(ensemble)
    await store.start()
    await create_root_nodes(store, None, Random(0))
    users = ConfigStore(store, DynamicConfig({}), BrokerId(0))
    for user, password in PASSWORDS.items():
        salted = salted_password(SCRAM, password, SALT, ITERATIONS)
        credential = str(Credential.of_salted(SCRAM, salted, SALT, ITERATIONS))
        await users.change_user(user, lambda stored, of=credential: {**stored, SCRAM: of})  # type: ignore[misc]
    await store.close()

"""The SCRAM credentials of all users, as the metadata store has them.

Owns: the credentials in force, by mechanism and user. One writer: `shared_state/config_store.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.security.sasl.scram import HASHES, Credential

log = logging.getLogger(__name__)

MECHANISM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""As Kafka's requests name them."""
MECHANISM_NAMES: Final = {number: name for name, number in MECHANISM_NUMBERS.items()}


class ScramCredentials:
    def __init__(self) -> None:
        self.secret = b""  # derives the salts of unknown users
        self._by_mechanism: dict[str, dict[str, Credential]] = {name: {} for name in HASHES}

    def of(self, mechanism: str) -> Mapping[str, Credential]:
        return self._by_mechanism[mechanism]

    def users(self) -> list[str]:
        """Everyone who has a credential, in order."""
        return sorted({user for users in self._by_mechanism.values() for user in users})

    def of_user(self, user: str) -> dict[str, int]:
        """The iterations of each credential of a user, by mechanism."""
        return {
            mechanism: users[user].iterations
            for mechanism, users in self._by_mechanism.items()
            if user in users
        }

    def set_user(self, user: str, settings: Mapping[str, str]) -> None:
        """Replace all credentials of a user by those among its settings."""
        for mechanism, users in self._by_mechanism.items():
            users.pop(user, None)
            text = settings.get(mechanism)
            if text is None:
                continue
            try:
                users[user] = Credential.parse(text)
            except ValueError as error:
                log.error("cannot parse the %s credential of a user: %s", mechanism, error)

    def keep_only(self, users: Iterable[str]) -> None:
        """Drop everyone else: their nodes have gone."""
        kept = frozenset(users)
        for credentials in self._by_mechanism.values():
            for user in credentials.keys() - kept:
                del credentials[user]

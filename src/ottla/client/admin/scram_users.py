"""SCRAM credentials of users: setting, listing, deleting them.

Owns: the salted password, computed here so that a password never leaves this process.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, error_of
from ottla.client.cluster import Target, To
from ottla.client.errors import ErrorCode, UserError, refusal
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields
from ottla.security.sasl.scram import (
    ITERATIONS_DEFAULT,
    MECHANISM_NAMES,
    MECHANISM_NUMBERS,
    SALT_BYTES,
    salted_password,
)


class ScramUpsertion(NamedTuple):
    """A credential to set. `iterations`: 4096 to 16384."""

    user: str
    password: str
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = ITERATIONS_DEFAULT

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, [hidden], {self.mechanism!r})"


class ScramDeletion(NamedTuple):
    """A credential to delete."""

    user: str
    mechanism: str = "SCRAM-SHA-512"


async def alter_user_scram_credentials(
    session: Session, changes: Iterable[ScramUpsertion | ScramDeletion]
) -> Outcomes[str, None]:
    """Set and delete credentials; the outcome for each user.

    Brokers take one change of a user in a request: further ones go into requests of their own,
    unless an earlier one of that user failed.
    """
    remaining = list(changes)
    for change in remaining:
        if change.mechanism not in MECHANISM_NUMBERS:
            expected = " or ".join(MECHANISM_NUMBERS)
            raise UserError(f"mechanism {change.mechanism!r}: expected {expected}")
    outcomes: Outcomes[str, None] = Outcomes()
    while remaining:
        some = {change.user: change for change in reversed(remaining)}  # the first of each user
        outcomes.update(await _alter(session, list(some.values())))
        remaining = [
            change
            for change in remaining
            if change is not some[change.user] and not isinstance(outcomes[change.user], Exception)
        ]
    return outcomes


async def _alter(
    session: Session, requested_changes: Sequence[ScramUpsertion | ScramDeletion]
) -> Outcomes[str, None]:
    """One change of each of these users."""
    upsertions = {
        change: await asyncio.to_thread(_upsertion_fields, change)
        for change in requested_changes
        if isinstance(change, ScramUpsertion)
    }

    async def ask(node: To, users: list[str]) -> Answers[str, None]:
        fields = {
            "deletions": [
                {"name": change.user, "mechanism": MECHANISM_NUMBERS[change.mechanism]}
                for change in requested_changes
                if isinstance(change, ScramDeletion) and change.user in users
            ],
            "upsertions": [entry for change, entry in upsertions.items() if change.user in users],
        }
        reply = await session.ask(node, api_keys.ALTER_USER_SCRAM_CREDENTIALS, fields)
        return {row.user: error_of(row) for row in reply.results}

    return await session.for_each(
        (change.user for change in requested_changes), session.controller, ask
    )


async def describe_user_scram_credentials(
    session: Session, users: Iterable[str] | None = None
) -> Outcomes[str, dict[str, int]]:
    """The iterations of each credential by mechanism, of these users or of all."""
    named = None if users is None else [{"name": name} for name in dict.fromkeys(users)]
    fields: Fields = {"users": named}
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, fields)
    return Outcomes({row.user: _credentials_of(row) for row in reply.results})


def _credentials_of(row: KioStruct) -> dict[str, int] | Exception:
    if row.error_code is not ErrorCode.none:
        return refusal(row.error_code, row.error_message)
    return {
        MECHANISM_NAMES[info.mechanism]: info.iterations
        for info in row.credential_infos
        if info.mechanism in MECHANISM_NAMES
    }


def _upsertion_fields(change: ScramUpsertion) -> Fields:
    """Slow by design: for a thread."""
    salt = secrets.token_bytes(SALT_BYTES)
    return {
        "name": change.user,
        "mechanism": MECHANISM_NUMBERS[change.mechanism],
        "iterations": change.iterations,
        "salt": salt,
        "salted_password": salted_password(
            change.mechanism, change.password, salt, change.iterations
        ),
    }

"""kafka-configs.sh --entity-type users: SCRAM credentials, as Kafka's tool sets and shows them."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from typing import Final

from ottla.cli.kafka.arguments import ToolError
from ottla.client.admin.scram_users import ScramDeletion, ScramUpsertion
from ottla.client.admin.sync import Admin
from ottla.model.errors import UserError
from ottla.security.sasl.scram import ITERATIONS_DEFAULT, MECHANISM_NUMBERS

ITERATIONS: Final = "iterations"
PASSWORD: Final = "password"


def describe(admin: Admin, user: str | None) -> None:
    if user is None:
        users = admin.describe_user_scram_credentials().succeeded
    else:
        users = admin.describe_user_scram_credentials([user]).succeeded
    for name, credentials in sorted(users.items()):
        configs = ", ".join(
            f"{mechanism}=iterations={iterations}" for mechanism, iterations in credentials.items()
        )
        print(f"SCRAM credential configs for user-principal '{name}' are {configs}")


def alter(
    admin: Admin,
    user: str | None,
    options: Namespace,
    listed_pairs: Callable[[str], dict[str, str]],
) -> None:
    if not user:
        raise ToolError("an entity name must be specified with --alter of users")
    changes: list[ScramUpsertion | ScramDeletion] = []
    for text in options.add_config or ():
        for key, value in listed_pairs(text).items():
            changes.append(_upsertion(user, _mechanism(key), value, listed_pairs))
    for text in options.delete_config or ():
        changes += [ScramDeletion(user, _mechanism(key.strip())) for key in text.split(",")]
    if not changes:
        raise ToolError(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )
    admin.alter_user_scram_credentials(changes).all()
    print(f"Completed updating config for user {user}.")


def _mechanism(name: str) -> str:
    if name not in MECHANISM_NUMBERS:
        known = ", ".join(MECHANISM_NUMBERS)
        raise ToolError(f"Only SCRAM credentials of users can be changed: {name} is not in {known}")
    return name


def _upsertion(
    user: str, mechanism: str, text: str, listed_pairs: Callable[[str], dict[str, str]]
) -> ScramUpsertion:
    """From `iterations=8192,password=secret`; what it is instead may be the password."""
    try:
        values = listed_pairs(text)
    except UserError:
        values = {}
    password = values.pop(PASSWORD, "")
    iterations = values.pop(ITERATIONS, str(ITERATIONS_DEFAULT))
    if not password or values or not re.fullmatch("[0-9]{1,9}", iterations):
        raise ToolError(f"{mechanism}: expected [iterations=number,password=text]")
    return ScramUpsertion(user, password, mechanism, int(iterations))

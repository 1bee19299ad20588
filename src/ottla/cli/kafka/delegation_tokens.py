"""kafka-delegation-tokens.sh: create, renew, expire and describe delegation tokens.

Prints what Kafka's tool prints, the HMAC of new and described tokens included: whoever has it is
logged in as the token's owner. `ottla tokens` writes it to a file that only its user can read.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from ottla.cli.connection import admin_connection
from ottla.cli.kafka.arguments import Arguments, ToolError, int64, is_given
from ottla.cli.kafka.servers import bootstrap
from ottla.client.admin.sync import Admin
from ottla.client.admin.tokens import DelegationToken
from ottla.model.errors import KafkaError, UserError

HEADINGS: Final = (
    "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE",
)  # fmt: skip
WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
REQUIRED: Final = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
    "describe": (),
}
NOT_TOGETHER: Final = {
    "create": ("hmac", "renew_time_period", "expiry_time_period"),
    "renew": (
        "renewer_principal", "max_life_time_period", "expiry_time_period", "owner_principal",
    ),
    "expire": (
        "renewer_principal", "max_life_time_period", "renew_time_period", "owner_principal",
    ),
    "describe": ("renew_time_period", "max_life_time_period", "hmac", "expiry_time_period"),
}  # fmt: skip


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    action = parser.exactly_one(
        options,
        tuple(REQUIRED),
        "Command must include exactly one action: --create, --renew, --expire or --describe",
    )
    for option in ("command_config", *REQUIRED[action]):
        if not is_given(options, option):
            parser.error(f'Missing required argument "[{option.replace("_", "-")}]"')
    parser.not_together(options, NOT_TOGETHER)
    try:
        with admin_connection(bootstrap(options)) as admin:
            _do(action, admin, options)
    except (ToolError, KafkaError, UserError) as error:
        print(f"Error while executing delegation token command : {error}", file=sys.stderr)
        return 1
    return 0


def _do(action: str, admin: Admin, options: Namespace) -> None:
    match action:
        case "create":
            _create(admin, options)
        case "renew":
            period_ms = options.renew_time_period
            print(
                f"Calling renew token operation with hmac :{options.hmac} , "
                f"renew-time-period :{period_ms}"
            )
            expires_ms = admin.renew_delegation_token(options.hmac, period_ms)
            print(f"Completed renew operation. New expiry date : {date(expires_ms)}")
        case "expire":
            period_ms = options.expiry_time_period
            print(
                f"Calling expire token operation with hmac :{options.hmac} , "
                f"expire-time-period :{period_ms}"
            )
            expires_ms = admin.expire_delegation_token(options.hmac, period_ms)
            print(f"Completed expire operation. New expiry date : {date(expires_ms)}")
        case _:
            _describe(admin, _principals(options.owner_principal))


def _create(admin: Admin, options: Namespace) -> None:
    renewers, owners = (
        _principals(options.renewer_principal),
        _principals(options.owner_principal),
    )
    print(
        f"Calling create token operation with renewers :{_list_text(renewers)} , "
        f"max-life-time-period :{options.max_life_time_period}"
    )
    token = admin.create_delegation_token(
        owner=owners[0] if owners else None,
        renewers=renewers,
        max_lifetime_ms=options.max_life_time_period,
    )
    print(f"Created delegation token with tokenId : {token.id}")
    _show([token])


def _describe(admin: Admin, owners: list[str]) -> None:
    if owners:
        print(f"Calling describe token operation for owners: {_list_text(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_tokens(owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _show(tokens)


def _show(tokens: Iterable[DelegationToken]) -> None:
    """Kafka's table: a line break before each line and one after it."""
    for cells in (HEADINGS, *map(_cells, tokens)):
        print()
        print(" ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)))


def _cells(token: DelegationToken) -> tuple[str, ...]:
    return (
        token.id,
        token.hmac,
        token.owner,
        token.requester,
        _list_text(token.renewers),
        date(token.issued_ms),
        date(token.expires_ms),
        date(token.max_ms),
    )


def date(ms: int) -> str:
    """To the minute, in the time zone of this machine."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%dT%H:%M")


def _list_text(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _principals(texts: Iterable[str] | None) -> list[str]:
    principals = [text.strip() for text in texts or ()]
    for text in principals:
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            raise ToolError(
                f"expected a string in format principalType:principalName but got {text}"
            )
    return principals


def _parser() -> Arguments:
    parser = Arguments(
        "kafka-delegation-tokens.sh", "Create, renew, expire, or describe delegation tokens."
    )
    parser.cluster()
    for action in REQUIRED:
        parser.flag(f"--{action}")
    for principal in ("owner", "renewer"):
        parser.add_argument(f"--{principal}-principal", action="append", metavar="TYPE:NAME")
    for period in ("max-life", "renew", "expiry"):
        parser.add_argument(f"--{period}-time-period", type=int64, metavar="MS")
    parser.add_argument("--hmac", metavar="BASE64")
    return parser

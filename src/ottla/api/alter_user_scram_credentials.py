"""AlterUserScramCredentials (51): sets and deletes SCRAM credentials.

The client sends the salted password; what is stored are the keys derived from it. As Kafka does, it
takes one change of a user in a request, of whichever mechanism.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.net.error_log import escaped
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Operation
from ottla.security.sasl.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISM_NAMES, Credential

KEY: Final = 51
SALT_MAX_BYTES: Final = 1_024
SLICE: Final = 20
"""Users altered before the loop may run other tasks."""

audit = logging.getLogger("ottla.security.audit")


async def alter_user_scram_credentials(request: Request, ctx: Context) -> Fields:
    items = [item async for item in in_slices([*request.deletions, *request.upsertions])]
    by_user: dict[str, list[KioStruct]] = {}
    async for item in in_slices(items):
        by_user.setdefault(item.name, []).append(item)
    errors: dict[str, KafkaError] = {}
    results = []
    async for user in in_slices(by_user, SLICE):
        try:
            first, *others = by_user[user]
            _check(first)
            if others:
                raise KafkaError(
                    ErrorCode.duplicate_resource,
                    "A user credential cannot be altered twice in the same request",
                )
            await _alter(ctx, user, first)
        except KafkaError as error:
            errors[user] = error
        results.append(_result(user, errors.get(user)))
    return {"throttle_time": 0, "results": results}


def _check(item: KioStruct) -> None:
    if not item.name:
        raise KafkaError(ErrorCode.unacceptable_credential, "Username must not be empty")
    if item.mechanism not in MECHANISM_NAMES:
        raise KafkaError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if not _is_upsertion(item):
        return
    reason = None
    if item.iterations < ITERATIONS_MIN:
        reason = "Too few iterations"
    elif item.iterations > ITERATIONS_MAX:
        reason = "Too many iterations"
    elif not item.salt or len(item.salt) > SALT_MAX_BYTES:
        reason = "Empty or too long salt"
    elif not item.salted_password or len(item.salted_password) > SALT_MAX_BYTES:
        reason = "Empty or too long salted password"
    if reason is not None:
        raise KafkaError(ErrorCode.unacceptable_credential, reason)


async def _alter(ctx: Context, user: str, item: KioStruct) -> None:
    def change(stored: Mapping[str, str]) -> dict[str, str]:
        changed = dict(stored)
        mechanism = MECHANISM_NAMES[item.mechanism]
        if _is_upsertion(item):
            changed[mechanism] = str(
                Credential.of_salted(
                    mechanism, bytes(item.salted_password), bytes(item.salt), item.iterations
                )
            )
        elif changed.pop(mechanism, None) is None:
            raise KafkaError(
                ErrorCode.resource_not_found,
                "Attempt to delete a user credential that does not exist",
            )
        return changed

    await ctx.services.shared.configs.change_user(user, change)
    audit.info(
        "credentials changed: principal=%s host=%s user=%r",
        ctx.peer.principal, ctx.peer.address, escaped(user),
    )  # fmt: skip


def _is_upsertion(item: KioStruct) -> bool:
    return hasattr(item, "salted_password")


def _result(user: str, error: KafkaError | None) -> Fields:
    code = ErrorCode.none if error is None else error.code
    return {"user": user, "error_code": code, "error_message": error and error.message}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    users = dict.fromkeys(item.name for item in (*request.deletions, *request.upsertions))
    error = KafkaError(code, message)
    return {"throttle_time": 0, "results": [_result(user, error) for user in users]}


API = Api(
    KEY,
    "AlterUserScramCredentials",
    range(0, 1),
    alter_user_scram_credentials,
    refuse,
    needs=on_cluster(Operation.ALTER),
)

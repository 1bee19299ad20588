"""ApiVersions (18): the APIs and versions of this broker, so that a client can choose versions.

The only API that is answered for an unsupported version: with error 35, in version 0, with its own
versions. The header of the reply is never flexible, because the client cannot know yet whether it
may be.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import uses_broker_listener
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol import wire
from ottla.protocol.wire import Call

KEY: Final = 18
LEVELS: Final = {"group.version": 1, "transaction.version": 2}
"""The consumer protocol is supported, and so are transactions with an epoch for each (v2)."""
FIRST_WITH_LEVEL_0: Final = 4
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def api_versions(request: Request, ctx: Context) -> Fields:
    if ctx.call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (SOFTWARE.fullmatch(name) and SOFTWARE.fullmatch(version)):
            raise KafkaError(ErrorCode.invalid_request)
        ctx.peer.software_name, ctx.peer.software_version = name, version
    to_broker = ctx.peer.is_broker or uses_broker_listener(ctx.peer, ctx.services)
    return {
        "error_code": ErrorCode.none,
        **offered(to_broker=to_broker),
        **features(ctx.call.version),
    }


def offered(*, to_broker: bool = False) -> Fields:
    """Every API that the peer may call; those between brokers are advertised to brokers only."""
    from ottla.api import APIS  # the list holds this module

    keys = [
        {
            "api_key": api.key,
            "min_version": api.oldest_advertised,
            "max_version": api.versions.stop - 1,
        }
        for api in APIS
        if to_broker or not api.between_brokers
    ]
    return {"api_keys": keys, "throttle_time_ms": 0}


def features(version: int) -> Fields:
    """The finalized features. They never change in a release, hence the epoch 0."""
    lowest = 0 if version >= FIRST_WITH_LEVEL_0 else 1  # older Java clients cannot read a 0
    return {
        "supported_features": [
            {"name": name, "min_version": lowest, "max_version": level}
            for name, level in LEVELS.items()
        ],
        "finalized_features_epoch": 0,
        "finalized_features": [
            {"name": name, "max_version_level": level, "min_version_level": level}
            for name, level in LEVELS.items()
        ],
    }


def unsupported_version(call: Call) -> bytes:
    """In version 0, with the versions of this API only: enough for the client to retry."""
    old = wire.Call(call.key, 0, call.correlation_id, call.client_id, call.body_at)
    own = {
        "api_key": KEY,
        "min_version": API.oldest_advertised,
        "max_version": API.versions.stop - 1,
    }
    return wire.reply(old, {"error_code": ErrorCode.unsupported_version, "api_keys": [own]})


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"error_code": code, "api_keys": [], "throttle_time_ms": 0}


API = Api(KEY, "ApiVersions", range(0, 5), api_versions, refuse)

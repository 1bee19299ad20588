"""Envelope (58): a request that another broker forwards to the active controller for a client.

It is answered with the permissions of the client, and only for APIs that need the controller. If
this is not the active controller, the envelope is refused and its sender tries again: a request is
forwarded once at most.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.handling import LARGE_BYTES, attempt, refused
from ottla.delay.slices import finished
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.net.request_slot import Peer
from ottla.protocol import principals, wire

KEY: Final = 58
SIZE_BYTES: Final = 4


async def envelope(request: Request, ctx: Context) -> Fields:
    frame = memoryview(request.request_data)
    try:
        call = wire.parse_call(frame)
        api = _api(call)
        await finished(wire.check_request(call, frame))
        inner = wire.read_request(call, frame)
        peer = _client(request, ctx)
    except (Disconnect, ValueError) as error:
        raise KafkaError(ErrorCode.invalid_request, str(error)) from None
    if not ctx.services.controller.is_active:
        raise KafkaError(ErrorCode.not_controller)
    inner_ctx = Context(call, peer, ctx.services, len(frame) > LARGE_BYTES)
    try:
        fields = await attempt(api, inner, inner_ctx)
    except KafkaError as refusal:
        if refusal.code is ErrorCode.not_controller:
            raise
        fields = await refused(api, inner, refusal, inner_ctx)
    reply = await finished(wire.reply_in_pieces(call, fields))
    return {"response_data": reply[SIZE_BYTES:], "error_code": ErrorCode.none}


def _api(call: wire.Call) -> Api:
    from ottla.api import BY_KEY  # the list holds this module

    api = BY_KEY.get(call.key)
    if api is None or not api.needs_controller:
        raise KafkaError(ErrorCode.invalid_request, "This API is never forwarded.")
    if call.version not in api.versions:
        raise KafkaError(ErrorCode.unsupported_version)
    return api


def _client(request: Request, ctx: Context) -> Peer:
    address = str(ip_address(request.client_host_address))
    peer = Peer(address, 0, ctx.peer.listener, ctx.peer.protocol)
    if request.request_principal is not None:
        peer.principal = principals.decode(request.request_principal)
    return peer


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"response_data": None, "error_code": code}


API = Api(KEY, "Envelope", range(0, 1), envelope, refuse, between_brokers=True)

"""Asking a simulated broker: our own link and wire code, with a deadline and a retry around them.

Owns one connection. Never decides what an answer means; producers, consumers and admins do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any, Final

from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.net.outbound_connection import Ask, OutboundConnection, OutboundLimits
from ottla.net.version_handshake import request_versions
from ottla.protocol import wire
from ottla.security.sasl.client import ClientLogin
from ottla.security.sasl.login_requests import Requests, log_in
from tests.sim.broker import HOST, PORT

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
CREATE_PARTITIONS: Final = 37
INCREMENTAL_ALTER_CONFIGS: Final = 44

RETRIABLE: Final = frozenset(
    {
        ErrorCode.network_exception,  # ours: no answer came
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.kafka_storage_error,
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.leader_not_available,
        ErrorCode.not_controller,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.offset_not_available,  # a new leader that does not know its high watermark yet
    }
)
"""What a client may see while a broker starts, stops or loses its disk."""


class Client:
    bootstrap = f"{HOST}:{PORT}"
    several_brokers = False

    def __init__(
        self,
        name: str,
        clock: Clock,
        dice: Random,
        login: ClientLogin | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`login`: of every connection. `options`: with which `ottla.client` does the same."""
        self.options = {"bootstrap_servers": self.bootstrap, **(options or {})}
        self._login = login
        self._login_options = options
        self.name = name
        self.clock = clock
        self.dice = dice
        self._correlation_id = 0
        self._link = self.connection(HOST, PORT)

    def connection(self, host: str, port: int) -> OutboundConnection:
        limits = OutboundLimits(reconnect_backoff_ms=20, reconnect_backoff_max_ms=500)
        dice = Random(self.dice.random())
        if self._login is None:
            return OutboundConnection(host, port, self.clock, dice, limits)
        handshake = partial(self._log_in, self._login, host, f"{host}:{port}")
        return OutboundConnection(host, port, self.clock, dice, limits, handshake=handshake)

    async def _log_in(self, login: ClientLogin, host: str, address: str, ask: Ask) -> int:
        versions = await request_versions(ask, self._next_id, self.name, address)
        newest = versions.newest_common
        return await log_in(Requests(ask, self._next_id, self.name, newest, address, host), login)

    def _next_id(self) -> int:
        self._correlation_id += 1
        return self._correlation_id

    def named(self, name: str) -> Client:
        """Another client of the same brokers."""
        dice = Random(self.dice.random())
        return type(self)(name, self.clock, dice, self._login, self._login_options)

    def close(self) -> None:
        self._link.close()

    async def ask(
        self, key: int, version: int, fields: Mapping[str, Any], timeout_ms: int = 5_000
    ) -> Any:
        """One question, one try: OSError when no answer came."""
        return await self._call(self._link, (key, version), fields, timeout_ms)

    async def _call(
        self,
        link: OutboundConnection,
        api: tuple[int, int],
        fields: Mapping[str, Any],
        timeout_ms: int,
    ) -> Any:
        frame = wire.encode_request(*api, self._next_id(), self.name, fields)
        reply = await link.call(frame, timeout_ms)
        return wire.decode_reply(*api, reply)

    async def ask_until_answered(self, key: int, version: int, fields: Mapping[str, Any]) -> Any:
        while True:
            try:
                return await self.ask(key, version, fields)
            except OSError:
                await self.back_off()

    async def back_off(self) -> None:
        await asyncio.sleep(0.02 + self.dice.random() * 0.2)

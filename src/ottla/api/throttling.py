"""Throttling: records what a request used and adds the delay to its reply.

Owns the only place where a throttle time comes from: the largest of the delays of the quotas that
apply to the client. The connection is muted for that time; the reply is not held back (Kafka 2.0
and later). Requests of other brokers and of followers are exempt. Nothing is done while no user and
no client id has a quota.

Request time is the share of the event loop that a client's requests take: 100 % is the whole loop.
The time of a request that is answered at once is recorded with its reply; that of a task is
recorded after each of its steps.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final

from ottla.api.api import Context, Fields
from ottla.api.services import Services
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.net.request_slot import RequestSlot
from ottla.protocol.wire import Call
from ottla.security.quotas.client_quotas import ClientQuotas, client_of
from ottla.security.quotas.entities import Client, Quota

PERCENT_PER_NS: Final = 100 / 1e9
EXCEEDED: Final = "The throttling quota has been exceeded."


def throttle(call: Call, slot: RequestSlot, services: Services, *used: tuple[Quota, int]) -> int:
    """Record what a request used, and mute its connection; the throttle time for its reply."""
    quotas = services.shared.quotas
    if not quotas.in_force or slot.peer.is_broker:
        return 0
    client = client_of(slot.peer.principal, call.client_id)
    return throttle_client(client, slot, quotas, services.broker.clock, *used)


def throttle_client(
    client: Client, slot: RequestSlot, quotas: ClientQuotas, clock: Clock, *used: tuple[Quota, int]
) -> int:
    now_ms = clock.mono_ms()
    delay_ms = max(
        (quotas.record(quota, client, amount, now_ms) for quota, amount in used), default=0
    )
    percent = slot.busy_ns(clock.mono_ns()) * PERCENT_PER_NS
    delay_ms = max(delay_ms, quotas.record(Quota.REQUEST, client, percent, now_ms))
    if delay_ms:
        slot.throttle(delay_ms)
    return delay_ms


def throttled(call: Call, slot: RequestSlot, services: Services, fields: Fields) -> Fields:
    """The fields of a reply with its throttle time, which may be there already (mutations)."""
    if not services.shared.quotas.in_force:
        return fields
    own = fields.get("throttle_time", 0)
    own_ms = own if isinstance(own, int) else 0
    if own_ms:
        slot.throttle(own_ms)
    delay_ms = max(own_ms, throttle(call, slot, services))
    return {**fields, "throttle_time": delay_ms} if delay_ms else fields


class MutationQuota:
    """Counts the partitions that one request creates or deletes (KIP-599)."""

    def __init__(self, ctx: Context, strict_since: int) -> None:
        self._quotas = ctx.services.shared.quotas
        self._clock = ctx.services.broker.clock
        self._client = client_of(ctx.peer.principal, ctx.call.client_id)
        self._strict = ctx.call.version >= strict_since
        self.delay_ms = 0
        """The throttle time of the reply."""

    def take(self, partitions: int) -> None:
        """KafkaError if the quota was exceeded before, in a version that knows this error."""
        if not self._quotas.in_force:
            return
        allowed, delay_ms = self._quotas.mutate(
            self._client, partitions, self._clock.mono_ms(), strict=self._strict
        )
        self.delay_ms = max(self.delay_ms, delay_ms)
        if not allowed:
            raise KafkaError(ErrorCode.throttling_quota_exceeded, EXCEEDED)


class TimedWork(Coroutine[Any, Any, None]):
    """The work of a task; the time of each step is recorded for its client."""

    def __init__(
        self, work: Coroutine[Any, Any, None], call: Call, slot: RequestSlot, services: Services
    ) -> None:
        self._work = work
        self._client = client_of(slot.peer.principal, call.client_id)
        self._quotas = services.shared.quotas
        self._clock = services.broker.clock

    def send(self, value: Any) -> Any:
        started_ns = self._clock.mono_ns()
        try:
            return self._work.send(value)
        finally:
            self._record(started_ns)

    def throw(self, *error: Any) -> Any:
        started_ns = self._clock.mono_ns()
        try:
            return self._work.throw(*error)
        finally:
            self._record(started_ns)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()

    def _record(self, started_ns: int) -> None:
        percent = (self._clock.mono_ns() - started_ns) * PERCENT_PER_NS
        self._quotas.record(Quota.REQUEST, self._client, percent, self._clock.mono_ms())

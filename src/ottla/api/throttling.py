"""Throttling: records what a request used and adds the delay to its reply.

Owns the only place where a throttle time comes from: the largest of the delays of the quotas that
apply to the client. The connection is muted for that time; the reply is not held back (Kafka 2.0
and later). Fetches of followers and other APIs between brokers are exempt. Nothing is done while no
user and no client id has a quota.

Request time is the share of the event loop that a client's requests take: 100 % is the whole loop.
The time of a request that is answered at once is recorded with its reply; that of a task is
recorded after each of its steps.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final

from ottla.api.api import Api, Context, Fields
from ottla.api.services import Services
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.net.request_slot import Peer, RequestSlot
from ottla.protocol.wire import Call
from ottla.security.quotas.client_quotas import ClientUsage, Usage

PERCENT_PER_NS: Final = 100 / 1e9
NS_PER_MS: Final = 1_000_000
WRITE_TXN_MARKERS: Final = 27
MUTATIONS: Final = frozenset({19, 20, 37})  # CreateTopics, DeleteTopics, CreatePartitions
CORRELATION_BYTES: Final = 4
EXCEEDED: Final = "The throttling quota has been exceeded."


def throttle_produce(size: int, call: Call, slot: RequestSlot, services: Services) -> int:
    """Record the bytes of a Produce request when it starts; the throttle time for its reply.

    Not when it is answered, because others of its connection may start while it waits for replicas
    or for a flush, and all of them would exceed the quota together.
    """
    peer, now_ms = slot.peer, services.broker.clock.mono_ms()
    if peer.is_broker:
        return 0
    usage = services.shared.quotas.usage_of(peer.principal, call.client_id, now_ms).produce
    if usage is None:
        return 0
    delay_ms = usage.record(size, now_ms)
    if delay_ms:
        slot.throttle(delay_ms)
    return delay_ms


def throttle_time(call: Call, slot: RequestSlot, services: Services) -> int:
    """Record the time of a request when it is answered; the throttle time for its reply."""
    peer, clock = slot.peer, services.broker.clock
    if peer.is_broker:
        return 0
    now_ns = clock.mono_ns()
    now_ms = MonoMs(now_ns // NS_PER_MS)
    usage = services.shared.quotas.usage_of(peer.principal, call.client_id, now_ms).request
    if usage is None:
        return 0
    delay_ms = usage.record(slot.busy_ns(now_ns) * PERCENT_PER_NS, now_ms)
    if delay_ms:
        slot.throttle(delay_ms)
    return delay_ms


def record_produce(usage: ClientUsage, size: int, slot: RequestSlot, clock: Clock) -> int:
    """Both for a request that is answered at once. Hot where a quota applies."""
    now_ns = clock.mono_ns()
    now_ms, delay_ms, request_ms = MonoMs(now_ns // NS_PER_MS), 0, 0
    if usage.produce is not None:
        delay_ms = usage.produce.record(size, now_ms)
    if usage.request is not None:
        request_ms = usage.request.record(slot.busy_ns(now_ns) * PERCENT_PER_NS, now_ms)
    if request_ms > delay_ms:
        delay_ms = request_ms
    if delay_ms:
        slot.throttle(delay_ms)
    return delay_ms


def throttle_fetch(size: int, call: Call, slot: RequestSlot, services: Services) -> int:
    """Record a reply to Fetch of so many bytes, unless it exceeds the quota; the throttle time.

    If there is one, the records must not be sent, and they are not counted.
    """
    peer, clock = slot.peer, services.broker.clock
    if peer.is_broker:
        return 0
    now_ns = clock.mono_ns()
    now_ms, delay_ms = MonoMs(now_ns // NS_PER_MS), 0
    usage = services.shared.quotas.usage_of(peer.principal, call.client_id, now_ms)
    if usage.request is not None:
        delay_ms = usage.request.record(slot.busy_ns(now_ns) * PERCENT_PER_NS, now_ms)
    if usage.fetch is not None:
        delay_ms = max(delay_ms, usage.fetch.record(size, now_ms))
        if delay_ms:
            usage.fetch.take_back(size, now_ms)
    if delay_ms:
        slot.throttle(delay_ms)
    return delay_ms


def is_exempt(api: Api, peer: Peer) -> bool:
    """Whether requests of this API are not counted: brokers send them, or this process does."""
    return api.between_brokers or api.key == WRITE_TXN_MARKERS or peer.is_broker


def throttle_forwarded(call: Call, reply: bytes, slot: RequestSlot) -> None:
    """Mute the connection as the active controller says, which measures changes of topics."""
    if call.key in MUTATIONS:  # the throttle time is their first field
        at = CORRELATION_BYTES + (1 if call.flexible else 0)
        delay_ms = int.from_bytes(reply[at : at + 4], "big")
        if delay_ms:
            slot.throttle(delay_ms)


def throttled(
    api: Api, call: Call, slot: RequestSlot, services: Services, fields: Fields
) -> Fields:
    """The fields of a reply with its throttle time, which may be there already (mutations)."""
    if not services.shared.quotas.in_force or is_exempt(api, slot.peer):
        return fields
    own = fields.get("throttle_time", 0)
    own_ms = own if isinstance(own, int) else 0
    if own_ms:
        slot.throttle(own_ms)
    delay_ms = max(own_ms, throttle_time(call, slot, services))
    return {**fields, "throttle_time": delay_ms} if delay_ms else fields


class MutationQuota:
    """Counts the partitions that one request creates or deletes (KIP-599)."""

    def __init__(self, ctx: Context, strict_since: int) -> None:
        self._clock = ctx.services.broker.clock
        self._usage: Usage | None = None
        quotas = ctx.services.shared.quotas
        if quotas.in_force:
            now_ms = self._clock.mono_ms()
            self._usage = quotas.usage_of(ctx.peer.principal, ctx.call.client_id, now_ms).mutation
        self._strict = ctx.call.version >= strict_since
        self.delay_ms = 0
        """The throttle time of the reply."""

    def take(self, partitions: int) -> None:
        """KafkaError if the quota was exceeded before, in a version that knows this error."""
        if self._usage is None:
            return
        now_ms = self._clock.mono_ms()
        allowed, delay_ms = self._usage.mutate(partitions, now_ms, strict=self._strict)
        self.delay_ms = max(self.delay_ms, delay_ms)
        if not allowed:
            raise KafkaError(ErrorCode.throttling_quota_exceeded, EXCEEDED)

    def give_back(self, partitions: int) -> None:
        """They were refused for another reason."""
        if self._usage is not None:
            self._usage.give_back(partitions, self._clock.mono_ms())


class TimedWork(Coroutine[object, None, None]):
    """The work of a task; the time of each step is recorded for its client."""

    def __init__(
        self, work: Coroutine[object, None, None], call: Call, slot: RequestSlot, services: Services
    ) -> None:
        self._work = work
        self._principal = slot.peer.principal
        self._client_id = call.client_id
        self._quotas = services.shared.quotas
        self._clock = services.broker.clock

    def send(self, value: None) -> object:
        started_ns = self._clock.mono_ns()
        try:
            return self._work.send(value)
        finally:
            self._record(started_ns)

    def throw(self, *error: Any) -> object:
        started_ns = self._clock.mono_ns()
        try:
            return self._work.throw(*error)
        finally:
            self._record(started_ns)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[object, None, None]:
        return self._work.__await__()

    def _record(self, started_ns: int) -> None:
        now_ns = self._clock.mono_ns()
        now_ms = MonoMs(now_ns // NS_PER_MS)
        usage = self._quotas.usage_of(self._principal, self._client_id, now_ms).request
        if usage is not None:
            usage.record((now_ns - started_ns) * PERCENT_PER_NS, now_ms)

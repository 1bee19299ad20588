"""The quotas in force and the usage of each client.

Owns the measured usage, for as long as a client uses something and an hour longer. Never reads a
clock, mutes a connection or encodes a reply: callers record usage and get the delay.

`version` changes whenever a quota does, so that others can keep what they derived from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.delay.rates import KAFKAS_WINDOWS, SampledRate, TokenBucket, Windows
from ottla.model.clock import MonoMs
from ottla.security.quotas.entities import Client, Quota, Quotas, applied_quota, connection_rate

USER_PREFIX: Final = "User:"
UNUSED_MS: Final = 3_600_000
"""The usage of a client that has used nothing for this long is forgotten."""
CLIENTS_MAX: Final = 10_000
"""Clients choose their client ids: beyond this number some that are little used are forgotten."""
EXAMINED_MAX: Final = 10
"""How many are looked at to find one that may be forgotten."""


class Usage:
    """The usage of those who share one quota. Hot where a quota applies."""

    __slots__ = ("_max_delay_ms", "bucket", "delay_ms", "is_used", "limit", "rate", "used_ms")

    def __init__(self, limit: float, windows: Windows, max_delay_ms: int | None) -> None:
        self.limit = limit
        self.rate = SampledRate(windows)
        self.bucket = TokenBucket(windows)
        self.used_ms = MonoMs(0)
        self.is_used = False  # anything was recorded
        self.delay_ms = 0  # the last delay
        self._max_delay_ms = max_delay_ms

    def record(self, value: float, now_ms: MonoMs) -> int:
        """Count usage; how long the client is throttled, in milliseconds."""
        self.used_ms, self.is_used = now_ms, True
        limit, rate, most = self.limit, self.rate, self._max_delay_ms
        rate.record(value, now_ms)
        if limit > 0:
            delay_ms = rate.delay_ms(limit, now_ms)
            if most is not None and delay_ms > most:
                delay_ms = most
        else:
            delay_ms = most or 0
        self.delay_ms = delay_ms
        return delay_ms

    def take_back(self, value: float, now_ms: MonoMs) -> None:
        """What was recorded has not been used after all."""
        self.rate.record(-value, now_ms)

    def give_back(self, permits: int, now_ms: MonoMs) -> None:
        """Changes of topics that were counted have been refused."""
        self.bucket.take(-permits, self.limit, now_ms)

    def mutate(self, permits: int, now_ms: MonoMs, *, strict: bool) -> tuple[bool, int]:
        """Count changes of topics: whether they are allowed now, and the delay.

        Only a strict request is refused, and only if the quota was exceeded before it.
        """
        self.used_ms, self.is_used = now_ms, True
        bucket, limit = self.bucket, self.limit
        allowed = not strict or bucket.available(limit, now_ms) >= 0
        if allowed:
            bucket.take(permits, limit, now_ms)
        self.delay_ms = bucket.delay_ms(limit, now_ms)
        return allowed, 0 if strict and allowed else self.delay_ms


class ClientUsage:
    """Where the usage of one client is recorded; None where no quota applies to it."""

    __slots__ = ("fetch", "mutation", "produce", "request")

    def __init__(
        self,
        produce: Usage | None,
        fetch: Usage | None,
        request: Usage | None,
        mutation: Usage | None,
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutation = mutation


class ClientQuotas:
    """One for a broker."""

    def __init__(
        self, windows: Windows = KAFKAS_WINDOWS, controller_windows: Windows = KAFKAS_WINDOWS
    ) -> None:
        self.version = 0
        self.in_force = False
        """Whether any user or client id has a quota."""
        self._windows = windows
        self._controller_windows = controller_windows
        self._quotas: Quotas = {}
        self._clients: dict[tuple[str, str | None], ClientUsage] = {}
        self._usage: dict[tuple[Quota, Client], Usage] = {}  # little used ones are the first

    @property
    def quotas(self) -> Quotas:
        return self._quotas

    def follow(self, quotas: Quotas) -> None:
        """Use these quotas from now on; usage keeps counting."""
        self._quotas = quotas
        self.in_force = any(entity.ip is None for entity in quotas)
        self._clients = {}
        self.version += 1

    def usage_of(self, principal: str, client_id: str | None, now_ms: MonoMs) -> ClientUsage:
        """Where to record what this client uses."""
        key = (principal, client_id)
        usage = self._clients.get(key)
        if usage is None:
            client = client_of(principal, client_id)
            produce, fetch, request, mutation = (
                self._usage_of(quota, client, now_ms)
                for quota in (Quota.PRODUCE, Quota.FETCH, Quota.REQUEST, Quota.MUTATION)
            )
            if len(self._clients) >= CLIENTS_MAX:
                self._clients = {}
            usage = self._clients[key] = ClientUsage(produce, fetch, request, mutation)
        return usage

    def connection_rate(self, ip: str) -> float | None:
        return connection_rate(self._quotas, ip)

    def fetch_max_bytes(self, principal: str, client_id: str | None, now_ms: MonoMs) -> int | None:
        """The most that may be fetched at once without a delay; None if there is no limit."""
        usage = self.usage_of(principal, client_id, now_ms).fetch
        if usage is None:
            return None
        return int(usage.limit * (self._windows.samples - 1) * self._windows.size_ms / 1000)

    def expire(self, now_ms: MonoMs) -> None:
        """Forget some of what has not been used for long."""
        for _ in range(min(EXAMINED_MAX, len(self._usage))):
            self._forget_first(now_ms, UNUSED_MS)

    def usage(self, quota: Quota, now_ms: MonoMs) -> Iterator[tuple[Client, Usage]]:
        """Of those who used something in the last hour."""
        return (
            (sharers, used)
            for (kind, sharers), used in self._usage.items()
            if kind is quota and used.is_used and now_ms - used.used_ms < UNUSED_MS
        )

    def _usage_of(self, quota: Quota, client: Client, now_ms: MonoMs) -> Usage | None:
        applied = applied_quota(self._quotas, quota, client)
        if applied is None:
            return None
        key = (quota, applied.sharers)
        usage = self._usage.get(key)
        if usage is None:
            self._make_room(now_ms)
            windows = self._controller_windows if quota is Quota.MUTATION else self._windows
            longest_ms = windows.size_ms if quota is Quota.REQUEST else None  # Kafka's bound
            usage = self._usage[key] = Usage(applied.limit, windows, longest_ms)
        usage.limit, usage.used_ms = applied.limit, now_ms
        return usage

    def _make_room(self, now_ms: MonoMs) -> None:
        """For the usage of one more client."""
        self.expire(now_ms)
        if len(self._usage) < CLIENTS_MAX:
            return
        for _ in range(EXAMINED_MAX):
            if self._forget_first(now_ms, self._windows.full_ms):
                return  # nothing is lost: it would be measured as nothing
        self._forget_first(now_ms, 0)

    def _forget_first(self, now_ms: MonoMs, unused_ms: int) -> bool:
        """Forget the first if it was not used for so long; otherwise it becomes the last."""
        key, usage = next(iter(self._usage.items()))
        del self._usage[key]
        if now_ms - usage.used_ms < unused_ms:
            self._usage[key] = usage
            return False
        self._clients = {}  # they may refer to it
        return True


def client_of(principal: str, client_id: str | None) -> Client:
    """The client as quotas name it."""
    return Client(principal.removeprefix(USER_PREFIX), client_id or "")

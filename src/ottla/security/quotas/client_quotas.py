"""The quotas in force and the usage of each client.

Owns the measured usage, for as long as a client uses something and an hour longer. Never reads a
clock, mutes a connection or encodes a reply: callers record usage and get the delay.

`version` changes whenever a quota does, so that others can keep what they derived from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.security.quotas.entities import (
    AppliedQuota,
    Client,
    Quota,
    Quotas,
    applied_quota,
    connection_rate,
)
from ottla.security.quotas.rates import SampledRate, TokenBucket, Windows

USER_PREFIX: Final = "User:"
UNUSED_MS: Final = 3_600_000
"""The usage of a client that has used nothing for this long is forgotten."""
KAFKAS_WINDOWS: Final = Windows()
CLIENTS_MAX: Final = 10_000
"""Clients choose their client ids: beyond this number the longest unused are forgotten."""


class Usage:
    """The usage of those who share one quota."""

    __slots__ = ("bucket", "delay_ms", "limit", "rate", "used_ms")

    def __init__(self, limit: float, windows: Windows) -> None:
        self.limit = limit
        self.rate = SampledRate(windows)
        self.bucket = TokenBucket(windows)
        self.used_ms = 0
        self.delay_ms = 0  # the last delay


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
        self._applied: dict[tuple[Quota, Client], AppliedQuota | None] = {}
        self._usage: dict[tuple[Quota, Client], Usage] = {}  # the longest unused first

    @property
    def quotas(self) -> Quotas:
        return self._quotas

    def follow(self, quotas: Quotas) -> None:
        """Use these quotas from now on; usage keeps counting."""
        self._quotas = quotas
        self.in_force = any(entity.ip is None for entity in quotas)
        self._applied = {}
        self.version += 1

    def limit(self, quota: Quota, client: Client) -> float | None:
        applied = self._apply(quota, client)
        return None if applied is None else applied.limit

    def connection_rate(self, ip: str) -> float | None:
        return connection_rate(self._quotas, ip)

    def max_in_window(self, quota: Quota, client: Client) -> int | None:
        """The most that may be used at once without a delay; None if there is no limit."""
        limit = self.limit(quota, client)
        if limit is None:
            return None
        return int(limit * (self._windows.samples - 1) * self._windows.size_ms / 1000)

    def record(self, quota: Quota, client: Client, value: float, now_ms: int) -> int:
        """Count usage; how long the client is throttled, in milliseconds."""
        usage = self._used(quota, client, now_ms)
        if usage is None:
            return 0
        usage.rate.record(value, now_ms)
        delay_ms = usage.rate.delay_ms(usage.limit, now_ms) if usage.limit > 0 else 0
        if quota is Quota.REQUEST and (usage.limit <= 0 or delay_ms > self._windows.size_ms):
            delay_ms = self._windows.size_ms  # Kafka's bound
        usage.delay_ms = delay_ms
        return delay_ms

    def take_back(self, quota: Quota, client: Client, value: float, now_ms: int) -> None:
        """What was recorded has not been used after all."""
        usage = self._used(quota, client, now_ms)
        if usage is not None:
            usage.rate.record(-value, now_ms)

    def mutate(
        self, client: Client, permits: int, now_ms: int, *, strict: bool
    ) -> tuple[bool, int]:
        """Count changes of topics: whether they are allowed now, and the delay.

        Only a strict request is refused, and only if the quota was exceeded before it.
        """
        usage = self._used(Quota.MUTATION, client, now_ms)
        if usage is None:
            return True, 0
        bucket, limit = usage.bucket, usage.limit
        allowed = not strict or bucket.available(limit, now_ms) >= 0
        if allowed:
            bucket.take(permits, limit, now_ms)
        usage.delay_ms = bucket.delay_ms(limit, now_ms)
        return allowed, 0 if strict and allowed else usage.delay_ms

    def expire(self, now_ms: int) -> None:
        """Forget what has not been used for long."""
        while self._usage:
            key = next(iter(self._usage))
            if now_ms - self._usage[key].used_ms < UNUSED_MS:
                return
            del self._usage[key]

    def usage(self, quota: Quota) -> Iterator[tuple[Client, Usage]]:
        """Of those who used something in the last hour."""
        return ((sharers, used) for (kind, sharers), used in self._usage.items() if kind is quota)

    def _used(self, quota: Quota, client: Client, now_ms: int) -> Usage | None:
        applied = self._apply(quota, client)
        if applied is None:
            return None
        key = (quota, applied.sharers)
        usage = self._usage.pop(key, None)
        if usage is None:
            self.expire(now_ms)
            if len(self._usage) >= CLIENTS_MAX:
                del self._usage[next(iter(self._usage))]
            windows = self._controller_windows if quota is Quota.MUTATION else self._windows
            usage = Usage(applied.limit, windows)
        self._usage[key] = usage
        usage.limit, usage.used_ms = applied.limit, now_ms
        return usage

    def _apply(self, quota: Quota, client: Client) -> AppliedQuota | None:
        key = (quota, client)
        if key in self._applied:
            return self._applied[key]
        if len(self._applied) >= CLIENTS_MAX:
            self._applied = {}
        applied = self._applied[key] = applied_quota(self._quotas, quota, client)
        return applied


def client_of(principal: str, client_id: str | None) -> Client:
    """The client as quotas name it."""
    return Client(principal.removeprefix(USER_PREFIX), client_id or "")

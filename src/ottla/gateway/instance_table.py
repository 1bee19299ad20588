"""The consumer instances by group and name: how many there may be, and when they expire. Pure.

Owns: which names are taken, and when each was last used. Never: knows what an instance is, or reads
a clock; the time is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ottla.gateway.errors import INSTANCE_EXISTS, HttpError, instance_not_found
from ottla.model.clock import Clock, MonoMs

InstanceT = TypeVar("InstanceT")

RETRY_AFTER_S = 5


class InstanceKey(NamedTuple):
    """What an instance is called by; names of different groups are independent."""

    group: str
    name: str


@dataclass(slots=True)
class _Entry(Generic[InstanceT]):
    instance: InstanceT
    used_at: MonoMs
    requests: int = 0  # running ones: it does not expire meanwhile


class InstanceTable(Generic[InstanceT]):
    """At most `max_count` instances."""

    def __init__(self, max_count: int, timeout_ms: int) -> None:
        self._max_count = max_count
        self._timeout_ms = timeout_ms
        self._entries: dict[InstanceKey, _Entry[InstanceT]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: InstanceKey, instance: InstanceT, now: MonoMs) -> None:
        """Add an instance; refused where the name is taken or there are too many."""
        if key in self._entries:
            text = f"Consumer instance {key.name!r} of group {key.group!r} already exists"
            raise HttpError(INSTANCE_EXISTS, text)
        if len(self._entries) >= self._max_count:
            text = (
                f"{self._max_count} consumer instances exist, which is the limit: delete those no "
                "longer used, or start the gateway with a higher --max-consumers"
            )
            raise HttpError(503, text, retry_after_s=RETRY_AFTER_S)
        self._entries[key] = _Entry(instance, now)

    @contextmanager
    def use(self, key: InstanceKey, clock: Clock) -> Iterator[InstanceT]:
        """An instance for one request, which puts off its expiry; refused with 40403."""
        entry = self._entries.get(key)
        if entry is None:
            raise instance_not_found(*key)
        entry.requests += 1
        try:
            yield entry.instance
        finally:
            entry.requests -= 1
            entry.used_at = clock.mono_ms()

    def remove(self, key: InstanceKey) -> InstanceT:
        """Forget an instance; its name is free at once."""
        entry = self._entries.pop(key, None)
        if entry is None:
            raise instance_not_found(*key)
        return entry.instance

    def discard(self, key: InstanceKey, instance: InstanceT) -> None:
        """Forget this instance, unless another has its name by now."""
        entry = self._entries.get(key)
        if entry is not None and entry.instance is instance:
            del self._entries[key]

    def all(self) -> list[InstanceT]:
        return [entry.instance for entry in self._entries.values()]

    def remove_expired(self, now: MonoMs) -> dict[InstanceKey, InstanceT]:
        """Forget the instances that no request has used for too long."""
        expired = {
            key: entry.instance
            for key, entry in self._entries.items()
            if not entry.requests and now - entry.used_at >= self._timeout_ms
        }
        for key in expired:
            del self._entries[key]
        return expired

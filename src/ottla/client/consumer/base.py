"""What both faces of the consumer have in common: how they are made, and what they hand out.

Owns the typed constructor. With a deserializer the type of keys or values is what it gives;
without, they are bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import length_hint
from types import TracebackType
from typing import Any, Final, Generic, NamedTuple

from ottla.client.consumer.builder import ConsumerBuilder
from ottla.client.consumer.errors import ConcurrentUse
from ottla.client.consumer.interceptors import ConsumerInterceptor
from ottla.client.consumer.record import K, Record, V
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

_INSIDE: Final = "inside"


class OwningThread(NamedTuple):
    """A thread or a task."""

    id: int
    name: str


class ThreadOwnership:
    """`with ownership:` around every public method but `wakeup`."""

    def __init__(self, kind: str, who: Callable[[], OwningThread]) -> None:
        self._kind = kind
        self._who = who
        self._users: dict[str, OwningThread] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = self._who()
        inside = self._users.setdefault(_INSIDE, me)  # one step: compare and set
        if inside.id != me.id:
            raise ConcurrentUse(
                f"a consumer is for one {self._kind} at a time: {self._kind} {me.name!r} called it "
                f"while {self._kind} {inside.name!r} was inside; give each its own consumer"
            )
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth:
            del self._users[_INSIDE]


class ConsumerBase(ABC, Generic[K, V]):
    """The options of a consumer."""

    def __init__(
        self,
        *topics: str,
        config: Mapping[str, Any] | None = None,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **options: Any,
    ) -> None:
        for topic in topics:
            if not isinstance(topic, str):
                raise UserError(f"Consumer({topic!r}): expected names of topics")
        self._topics = topics
        self._handing: IterationBuffer[K, V] = IterationBuffer()
        deserializers = (key_deserializer, value_deserializer)
        self._blueprint = ConsumerBuilder(options, config, deserializers, interceptors)
        self._core = self._blueprint.core()
        self._core.unread = self._handing.unread
        self._make()

    @abstractmethod
    def _make(self) -> None:
        """Whatever else a face consists of."""


class IterationBuffer(Generic[K, V]):
    """Records that are being iterated over: taken from the buffer, not all seen by the user.

    Whoever commits in the middle must not commit what comes after. A list's iterator knows how
    many items are left, so the iteration itself costs nothing.
    """

    def __init__(self) -> None:
        self._records: list[Record[K, V]] = []
        self._iterator = iter(self._records)

    def start(self, records: list[Record[K, V]]) -> Any:
        """An iterator over these; those of before must be through."""
        self._records = records
        self._iterator = iter(records)
        return self._iterator

    def rest(self) -> list[Record[K, V]]:
        """What the user has not seen; it is no longer iterated over."""
        left = length_hint(self._iterator)
        records, self._records = self._records, []
        rest = records[len(records) - left :] if left else []
        records.clear()  # which ends an iteration that is under way
        self._iterator = iter(self._records)
        return rest

    def unread(self) -> dict[TopicPartition, int]:
        """For each partition the first record that the user has not seen."""
        left = length_hint(self._iterator)
        if not left:
            return {}
        found: dict[TopicPartition, int] = {}
        for record, _ in zip(reversed(self._records), repeat(None, left), strict=False):
            found[TopicPartition(record.topic, record.partition)] = record.offset
        return found

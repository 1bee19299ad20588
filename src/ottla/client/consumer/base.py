"""Shared by both consumers: the constructor, the check of concurrent use, and iteration.

Owns the typed constructor. With a deserializer the type of keys or values is what it returns;
without one they are bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import length_hint
from types import TracebackType
from typing import Final, Generic, NamedTuple

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

    def __init__(self, kind: str, current: Callable[[], OwningThread]) -> None:
        self._kind = kind
        self._current = current
        self._users: dict[str, OwningThread] = {}
        self._depth = 0

    def __enter__(self) -> None:
        caller = self._current()
        owner = self._users.setdefault(_INSIDE, caller)  # atomic compare and set
        if owner.id != caller.id:
            raise ConcurrentUse(
                f"a consumer is for one {self._kind} at a time: {self._kind} {caller.name!r} "
                f"called it while {self._kind} {owner.name!r} was inside; use one for each"
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
        config: Mapping[str, object] | None = None,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **options: object,
    ) -> None:
        for topic in topics:
            if not isinstance(topic, str):
                raise UserError(f"Consumer({topic!r}): expected topic names")
        self._topics = topics
        self._iteration: IterationBuffer[K, V] = IterationBuffer()
        deserializers = (key_deserializer, value_deserializer)
        self._builder = ConsumerBuilder(options, config, deserializers, interceptors)
        self._core = self._builder.core()
        self._core.unread = self._iteration.unread
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Create the parts that only this class has."""


class IterationBuffer(Generic[K, V]):
    """Records that are being iterated over: taken from the buffer, not all seen by the user.

    A commit in the middle must not include the records after it. A list's iterator knows how many
    items are left, so the iteration itself costs nothing.
    """

    def __init__(self) -> None:
        self._records: list[Record[K, V]] = []
        self._iterator = iter(self._records)

    def start(self, records: list[Record[K, V]]) -> Iterator[Record[K, V]]:
        """An iterator over these; the previous one must be exhausted."""
        self._records = records
        self._iterator = iter(records)
        return self._iterator

    def take_unseen(self) -> list[Record[K, V]]:
        """The records the user has not seen; the iteration ends."""
        count = length_hint(self._iterator)
        records, self._records = self._records, []
        unseen = records[len(records) - count :] if count else []
        records.clear()  # which ends a running iteration
        self._iterator = iter(self._records)
        return unseen

    def unread(self) -> dict[TopicPartition, int]:
        """For each partition the first record that the user has not seen."""
        count = length_hint(self._iterator)
        if not count:
            return {}
        offsets: dict[TopicPartition, int] = {}
        for record, _ in zip(reversed(self._records), repeat(None, count), strict=False):
            offsets[TopicPartition(record.topic, record.partition)] = record.offset
        return offsets

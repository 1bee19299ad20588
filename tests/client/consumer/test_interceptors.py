from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.client.consumer.interceptors import ConsumerInterceptor, Interceptors
from ottla.client.consumer.record import Record
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.ids import TopicPartition


def record(offset: int) -> Record[Any, Any]:
    return Record("t", 0, offset, 0, 0, None, None)


class DropFirst(ConsumerInterceptor):
    closed = False

    def __init__(self) -> None:
        self.commits: list[Mapping[TopicPartition, OffsetAndMetadata]] = []

    def on_consume(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
        return records[1:]

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.commits.append(offsets)

    def close(self) -> None:
        self.closed = True


class Broken(ConsumerInterceptor):
    def on_consume(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
        raise ZeroDivisionError

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        raise ZeroDivisionError

    def close(self) -> None:
        raise ZeroDivisionError


@pytest.mark.spec("CON-53")
def test_each_gets_what_the_one_before_made_and_a_broken_one_is_passed_over() -> None:
    one, two = DropFirst(), DropFirst()
    chain = Interceptors([one, Broken(), two, ConsumerInterceptor()])
    assert [each.offset for each in chain.call_on_consume([record(n) for n in range(4)])] == [2, 3]
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(4)}
    chain.call_on_commit(offsets)
    assert one.commits == two.commits == [offsets]
    chain.close()
    assert one.closed and two.closed
    assert chain and not Interceptors([])

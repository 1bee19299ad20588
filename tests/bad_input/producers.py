"""A transactional producer that says exactly what a test wants it to say.

Speaks transactions v1 (partitions are added first, one epoch for all) or v2 (a Produce adds its
partition, each end raises the epoch). Never retries, and believes nothing.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Final, NamedTuple

from ottla.model.errors import ErrorCode
from tests.raw_requests import INIT_PRODUCER_ID, PRODUCE, Line, batch, produce_fields

FIND_COORDINATOR: Final = 10
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
VERSIONS: Final = (1, 2)
"""Of transactions."""
_PRODUCE: Final = {1: 11, 2: 12}
_END: Final = {1: 3, 2: 5}
_numbers: Final = itertools.count(1)


class Who(NamedTuple):
    """An id, the producer it stands for, and the versions it speaks."""

    id: str
    producer_id: int
    epoch: int
    version: int


def begun(line: Line, version: int, id: str = "", **more: Any) -> Who:
    """A producer that has just begun, under an id of its own unless one is given."""
    id = id or f"by-hand-{next(_numbers)}"
    line.ask(FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[id])
    said = init(line, id, **more)
    assert said.error_code is ErrorCode.none, said
    return Who(id, said.producer_id, said.producer_epoch, version)


def init(line: Line, id: str | None, version: int = 6, **more: Any) -> Any:
    fields = {"transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    while True:
        said = line.ask(INIT_PRODUCER_ID, version, transactional_id=id, **{**fields, **more})
        if said.error_code not in (
            ErrorCode.concurrent_transactions,  # the one before is being aborted
            ErrorCode.coordinator_not_available,  # the topic is being made
            ErrorCode.coordinator_load_in_progress,
        ):
            return said


def add(line: Line, who: Who, topic: str) -> ErrorCode:
    said = line.ask(
        ADD_PARTITIONS,
        3,
        v3_and_below_transactional_id=who.id,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=[{"name": topic, "partitions": [0]}],
    )
    code: ErrorCode = (
        said.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    )
    return code


def write(line: Line, who: Who, topic: str, value: str, sequence: int = 0) -> ErrorCode:
    """One record; with v1, to a partition that has been added before."""
    records = batch(
        value,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        base_sequence=sequence,
        transactional=True,
        timestamp=time.time_ns() // 1_000_000,  # as the markers have: they share a segment
    )
    fields = {**produce_fields(topic, records), "transactional_id": who.id}
    reply = line.ask(PRODUCE, _PRODUCE[who.version], **fields)
    code: ErrorCode = reply.responses[0].partition_responses[0].error_code
    return code


def opened(line: Line, who: Who, topic: str, value: str, sequence: int = 0) -> None:
    """A transaction with one record in it."""
    if who.version == 1:
        assert add(line, who, topic) is ErrorCode.none
    assert write(line, who, topic, value, sequence) is ErrorCode.none


def end(line: Line, who: Who, *, commit: bool = True) -> Any:
    return line.ask(
        END_TXN,
        _END[who.version],
        transactional_id=who.id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        committed=commit,
    )


def ended(line: Line, who: Who, *, commit: bool = True) -> Who:
    """Who it is afterwards."""
    said = end(line, who, commit=commit)
    assert said.error_code is ErrorCode.none, said
    if who.version == 1:
        return who
    return who._replace(producer_id=said.producer_id, epoch=said.producer_epoch)

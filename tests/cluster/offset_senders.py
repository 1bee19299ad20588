"""Transactional producers that send offsets, among many groups, on a broker that is killed.

Owns: the groups that fill `__consumer_offsets`, and client threads of `ottla`. Never: touches the
broker's process.

A sender writes its next number to a topic and the same number, as an offset, to a group of its own,
in one transaction. Whatever happens, the numbers in the topic must be those below the offset.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import ottla
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from tests.cluster.process import wait_for
from tests.raw_requests import Line

OFFSET_COMMIT: Final = 8
FIND_COORDINATOR: Final = 10
SOURCE: Final = TopicPartition("source", 0)
SINK: Final = "sink"
SINK_PARTITIONS: Final = 4
AT_ONCE: Final = 100
SOON: Final[dict[str, Any]] = {"reconnect_backoff_max_ms": 200, "retry_backoff_max_ms": 200}
AT_REST: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})


def fill_groups(address: str, count: int) -> None:
    """Commit an offset for each of so many groups."""
    with Line(address, 60.0) as line:
        wait_for(lambda: _commit_works(line), 60.0, "the group coordinator")
        for first in range(0, count, AT_ONCE):
            names = [f"group-{number}" for number in range(first, min(first + AT_ONCE, count))]
            for name in names:
                line.send_request(OFFSET_COMMIT, 2, **_commit(name))
            for name in names:
                assert line.receive() is not None, name
        said = line.ask(OFFSET_COMMIT, 2, **_commit(f"group-{count - 1}"))
        assert said.topics[0].partitions[0].error_code is ErrorCode.none, said


def _commit_works(line: Line) -> bool:
    line.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["group-0"])
    said = line.ask(OFFSET_COMMIT, 2, **_commit("group-0"))
    return said.topics[0].partitions[0].error_code is ErrorCode.none


def _commit(group: str) -> dict[str, Any]:
    row = {"partition_index": SOURCE.partition, "committed_offset": 1, "committed_metadata": ""}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": [{"name": SOURCE.topic, "partitions": [row]}],
    }


class Sender(threading.Thread):
    """One transactional id in many lives; it ends with a life in which nothing failed."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"sender-{number}", daemon=True)
        self.number = number
        self.ended = 0
        self.failures: list[str] = []
        self._address = address
        self._asked_to_stop = stop

    def run(self) -> None:
        while True:
            try:
                self._live()
                return
            except (KafkaError, OSError) as error:
                self.failures.append(repr(error))
                time.sleep(0.05)

    def _live(self) -> None:
        with ottla.Producer(
            bootstrap_servers=self._address,
            transactional_id=self.name,
            max_block_ms=60_000,
            delivery_timeout_ms=30_000,
            request_timeout_ms=10_000,
            linger_ms=0,
            **SOON,
        ) as producer:
            producer.init_transactions()
            number = stable_offset(self._address, self.name)
            while not self._asked_to_stop.is_set():
                producer.begin()
                value = b"%d:%d" % (self.number, number)
                producer.send(SINK, value, partition=self.number % SINK_PARTITIONS)
                number += 1
                producer.send_offsets({SOURCE: number}, self.name)
                producer.commit()
                self.ended += 1


def stable_offset(address: str, group: str) -> int:
    """What the group has committed, once no transaction may still change it; 0: nothing."""
    with ottla.Admin(bootstrap_servers=address, **SOON) as admin:
        found = admin.list_group_offsets(group, [SOURCE], require_stable=True).all()
    return found[SOURCE].offset if SOURCE in found else 0


def open_transactions(address: str) -> dict[str, str]:
    """The state of each transactional id whose transaction has not ended."""
    try:
        with ottla.Admin(bootstrap_servers=address, **SOON) as admin:
            listed = admin.list_transactions()
    except (KafkaError, OSError) as error:
        return {"": f"transactions could not be listed: {error}"}
    return {one.id: one.state for one in listed if one.state not in AT_REST}

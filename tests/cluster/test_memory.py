"""A broker with little memory: what clients send is bounded, and everybody is served in the end.

Its memory is what `memory.limit.bytes` says, as if a control group had; what it really takes is
measured.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.cluster.memory_use import rss_after_first_record
from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import PRODUCE, Line, batch, create_topics, produced

MIB = 1 << 20
OFFSET_COMMIT, JOIN_GROUP, FIND_COORDINATOR = 8, 11, 10
LIMIT = 512 * MIB
REQUESTS = LIMIT // 4
GROUPS = LIMIT // 8
OFFSETS = LIMIT // 16
SLACK = 80 * MIB
"""What is copied on its way, and what the allocator keeps for next time."""


class Watched:
    """The most memory a broker was seen with, looked at all the time."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.most = broker.rss_bytes
        self._broker = broker
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ending.wait(0.005):
            self.most = max(self.most, self._broker.rss_bytes)


@contextmanager
def small_broker(folder: Path) -> Iterator[BrokerProcess]:
    settings = {"memory.limit.bytes": str(LIMIT), "group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(folder, settings) as broker:
        with Line(broker.address) as line:
            create_topics(line, ["t"])
        yield broker


def join(metadata: bytes, group: str) -> bytes:
    fields = {
        "group_id": group, "session_timeout": 30_000, "rebalance_timeout": 60_000,
        "member_id": "", "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }  # fmt: skip
    return wire.encode_request(JOIN_GROUP, 3, 1, "large", fields)


def joined(reply: bytes | None) -> Any:
    assert reply is not None, "the connection was closed"
    return wire.decode_reply(JOIN_GROUP, 3, memoryview(reply))


def has_groups(broker: BrokerProcess) -> bool:
    """Who asks for a coordinator first has the topic of groups made."""
    with Line(broker.address) as line:
        line.ask(FIND_COORDINATOR, 1, key="first", key_type=0)
        line.send(join(b"", "first"))
        return joined(line.receive()).error_code is ErrorCode.none


def in_threads(works: list[threading.Thread]) -> None:
    for work in works:
        work.start()


@pytest.mark.spec("NET-20", "NET-25")
def test_large_requests_that_never_end_take_no_more_than_their_share(tmp_path: Path) -> None:
    """Twenty connections have ninety megabytes each to say, and never say the last of them."""
    head = struct.pack(">ihhi", 90 * MIB + 100, PRODUCE, 9, 1)

    def send(line: Line) -> None:
        with suppress(OSError):  # it waits for room, until it is closed
            line.send(head + bytes(90 * MIB))

    with small_broker(tmp_path) as broker, ExitStack() as stack:
        before = rss_after_first_record(broker)
        lines = [stack.enter_context(Line(broker.address, 60)) for _ in range(20)]
        watched = stack.enter_context(Watched(broker))
        in_threads([threading.Thread(target=send, args=(one,), daemon=True) for one in lines])
        wait_for(lambda: watched.most - before > 60 * MIB, what="the first to arrive")
        with Line(broker.address) as line:
            for _ in range(100):
                assert produced(line, "t", batch("v")).error_code is ErrorCode.none
            large = batch(*["x" * 10_000] * 70)  # of the size that waits in the other line
            assert produced(line, "t", large).error_code is ErrorCode.none
        wait_for(lambda: "request timed out" in broker.said, 60, "one that stalls to be closed")
        assert watched.most - before < REQUESTS + SLACK
        assert "Traceback" not in broker.said


@pytest.mark.spec("NET-20")
def test_more_large_requests_than_there_is_memory_for_are_all_answered(tmp_path: Path) -> None:
    """They are whole: each waits for its turn, and none for ever."""
    replies: list[Any] = []

    def ask(address: str, number: int) -> None:
        with Line(address, 120) as line:
            line.send(join(bytes(60 * MIB), f"large-{number}"))
            replies.append(joined(line.receive()).error_code)

    with small_broker(tmp_path) as broker:
        wait_for(lambda: has_groups(broker), what="groups")
        before = rss_after_first_record(broker)
        with Watched(broker) as watched:
            asking = [
                threading.Thread(target=ask, args=(broker.address, number)) for number in range(6)
            ]
            in_threads(asking)
            for one in asking:
                one.join()
        assert replies == [ErrorCode.group_max_size_reached] * 6
        assert watched.most - before < REQUESTS + 60 * MIB + SLACK  # one is decoded


def test_members_with_megabytes_of_metadata_are_refused_and_ordinary_ones_are_not(
    tmp_path: Path,
) -> None:
    with small_broker(tmp_path) as broker, ExitStack() as stack:
        wait_for(lambda: has_groups(broker), what="groups")
        before = rss_after_first_record(broker)
        watched = stack.enter_context(Watched(broker))
        refused = 0
        for number in range(30):
            line = stack.enter_context(Line(broker.address, 60))
            line.send(join(bytes(10 * MIB), f"large-{number}"))
            refused += joined(line.receive()).error_code is ErrorCode.group_max_size_reached
        assert 30 - GROUPS // (10 * MIB) <= refused < 30
        with Line(broker.address) as line:
            line.send(join(b"ordinary", "ordinary"))
            assert joined(line.receive()).error_code is ErrorCode.none
        assert watched.most - before < GROUPS + SLACK
        assert broker.said.count("refused a member with") >= 1


def test_offsets_of_ever_more_groups_are_refused_and_those_of_known_groups_are_not(
    tmp_path: Path,
) -> None:
    partitions, groups = 200, 100

    def commit(line: Line, group: str, metadata: str) -> Counter[ErrorCode]:
        offsets = [
            {"partition_index": index, "committed_offset": 1, "committed_metadata": metadata}
            for index in range(partitions)
        ]
        topics = [{"name": "wide", "partitions": offsets}]
        reply = line.ask(
            OFFSET_COMMIT, 7, group_id=group, generation_id_or_member_epoch=-1, member_id="",
            topics=topics,
        )  # fmt: skip
        return Counter(part.error_code for part in reply.topics[0].partitions)

    with small_broker(tmp_path) as broker, Line(broker.address, 60) as line:
        create_topics(line, ["wide"], partitions)
        wait_for(lambda: has_groups(broker), what="groups")
        before = rss_after_first_record(broker)
        with Watched(broker) as watched:
            codes = [commit(line, f"group-{number}", "m" * 4_000) for number in range(groups)]
        assert codes[0] == {ErrorCode.none: partitions}
        assert codes[-1] == {ErrorCode.invalid_commit_offset_size: partitions}
        accepted = sum(code[ErrorCode.none] for code in codes)
        assert accepted * 4_000 < OFFSETS < (accepted + partitions) * 4_300
        assert commit(line, "group-0", "n" * 4_000) == {ErrorCode.none: partitions}
        assert watched.most - before < OFFSETS + SLACK
        assert broker.said.count("refused an offset of a further partition") >= 1

"""A broker that may open few files: connections do not take those that logs need."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import (
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    METADATA,
    Line,
    batch,
    create_topics,
    fetch_fields,
    produced,
)

LIMIT = 256
FLOOD = 2 * LIMIT
SERVE = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT // 2}, {LIMIT}))
sys.argv[0] = "ottla"
from ottla.__main__ import main
sys.exit(main())
"""


@contextmanager
def no_descriptors_in(broker: BrokerProcess) -> Iterator[None]:
    """The broker can open nothing, whatever it closes."""
    before = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, before)


def leaders(line: Line, topic: str) -> list[int]:
    fields: dict[str, Any] = {
        "topics": [{"topic_id": None, "name": topic}],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    [described] = line.ask(METADATA, 12, **fields).topics
    return [partition.leader_id for partition in described.partitions]


def begin_creating(line: Line, topic: str, partitions: int) -> None:
    """Its partitions may have no leader when the reply comes."""
    new = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    line.ask(CREATE_TOPICS, 7, topics=[new], timeout=2_000, validate_only=False)


def delete_topic(line: Line, topic: str) -> None:
    line.ask(DELETE_TOPICS, 6, topics=[{"name": topic, "topic_id": None}], timeout=2_000)


def answers(line: Line) -> bool:
    """Whether the broker answers it within a second."""
    line.socket.settimeout(1.0)
    try:
        line.ask(API_VERSIONS, 0)
    except (TimeoutError, AssertionError, OSError):
        return False
    return True


@pytest.mark.spec("NET-13")
def test_a_flood_of_idle_connections_leaves_the_logs_of_others_working(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.program = ["-c", SERVE]
    with broker, ExitStack() as stack:
        line = stack.enter_context(Line(broker.address))
        create_topics(line, ["t"], segment_bytes=str(1 << 20))
        flood = stack.enter_context(ExitStack())
        for _ in range(FLOOD):
            flood.enter_context(Line(broker.address))
        waiting = flood.enter_context(Line(broker.address))
        assert not answers(waiting)
        for number in range(30):
            assert produced(line, "t", batch("v" * 600_000)).error_code is ErrorCode.none
            create_topics(line, [f"more-{number}"], partitions=4)
        segments = list((tmp_path / "data" / "t-0").glob("*.log"))
        assert len(segments) > 10, "it rolled"
        assert broker.open_files < LIMIT
        said = [text for text in broker.said.splitlines() if "too few file descriptors" in text]
        assert len([text for text in said if "new connections on listener" in text]) == 1
        assert "Too many open files" not in broker.said
        flood.close()

        def accepted() -> bool:
            with Line(broker.address) as again:
                return answers(again)

        wait_for(accepted, what="new connections to be accepted")
        assert produced(line, "t", batch("last")).error_code is ErrorCode.none


def test_a_flood_of_fetches_that_nobody_reads_leaves_descriptors_for_others(tmp_path: Path) -> None:
    """Each connection then has two descriptors, and the files of its reply."""
    broker = BrokerProcess(tmp_path)
    broker.program = ["-c", SERVE]
    with broker, ExitStack() as stack:
        line = stack.enter_context(Line(broker.address))
        create_topics(line, ["t"])
        for _ in range(8):
            assert produced(line, "t", batch("v" * 900_000)).error_code is ErrorCode.none
        for _ in range(FLOOD):
            slow = stack.enter_context(Line(broker.address))
            slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.send_request(FETCH, 11, **fetch_fields("t"))
        for number in range(20):
            create_topics(line, [f"more-{number}"], partitions=4)
            assert produced(line, f"more-{number}", batch("v")).error_code is ErrorCode.none
        assert "Too many open files" not in broker.said


@pytest.mark.spec("REP-64", "REP-65", "CTL-53")
def test_partitions_that_no_descriptor_was_left_for_come_online_without_a_restart(
    tmp_path: Path,
) -> None:
    """Some are created, some deleted, while the broker can open nothing at all."""
    with BrokerProcess(tmp_path) as broker, Line(broker.address) as line:
        create_topics(line, ["first", "old"], partitions=8)
        assert leaders(line, "first") == [0] * 8  # its modules are loaded with the first request
        delete_topic(line, "first")
        with no_descriptors_in(broker):
            begin_creating(line, "t", partitions=8)
            wait_for(lambda: leaders(line, "t") == [-1] * 8, what="the replicas to be offline")
            delete_topic(line, "old")
        wait_for(lambda: leaders(line, "t") == [0] * 8, what="every partition to have a leader")
        assert produced(line, "t", batch("v")).error_code is ErrorCode.none

        def deleted() -> bool:
            return not list((tmp_path / "data").glob("old-?"))

        wait_for(deleted, what="the deletion")
        create_topics(line, ["old"])
        assert produced(line, "old", batch("new")).base_offset == 0
        assert "log directory" not in "".join(broker.warnings())
        assert broker.lives == 1

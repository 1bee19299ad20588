"""A broker that may open few files: connections do not take those that logs need."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import (
    API_VERSIONS,
    FETCH,
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

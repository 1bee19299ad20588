"""Mutated requests against a live broker: it neither crashes, nor hangs, nor grows.

Each frame is followed by a correct request on the same connection. Its answer, or the end of the
connection, shows that the broker has dealt with the frame; a frame that makes it wait is left
alone after a moment, as by a client that was reset.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from ottla.model.errors import Disconnect
from ottla.protocol import wire
from tests.api.acl_requests import OPEN
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess
from tests.fuzz.mutations import mutated
from tests.fuzz.requests import Requests
from tests.raw_requests import METADATA, Line, batch, create_topics, produced

CONNECTIONS = 12
PATIENCE_S = 0.25
PROBE_ID = 0x5EED
PROBE = wire.encode_request(18, 0, PROBE_ID, "probe", {})
CREATE_TOPICS, CREATE_PARTITIONS = 19, 37
PARTITIONS_MAX = 8
"""Creating partitions by the thousand is allowed and takes a while: not what is tested here."""
GROWTH_MAX = 48 << 20


class Fuzzer:
    """Sends frames over several connections at a time."""

    def __init__(self, port: int, seed: int, topic_ids: list[UUID]) -> None:
        self._port = port
        self._dice = Random(seed)
        self._requests = Requests(self._dice, topic_ids)
        self._other = self._requests.any()
        self.recent: deque[bytes] = deque(maxlen=4 * CONNECTIONS)
        self.answered = self.closed = self.left_waiting = 0

    async def run(self, count: int) -> None:
        left = [count]
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONNECTIONS):
                tasks.create_task(self._one(left))

    async def _one(self, left: list[int]) -> None:
        while left[0] > 0:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            except ConnectionRefusedError:  # it is gone: whoever counts will say so
                return
            try:
                while left[0] > 0:
                    left[0] -= 1
                    if not await self._ask(reader, writer):
                        break
            finally:
                writer.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One frame and the probe behind it; False when the connection is of no more use."""
        writer.write(self._next() + PROBE)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    reply = await reader.readexactly(size)
                    if int.from_bytes(reply[:4], "big") == PROBE_ID:
                        self.answered += 1
                        return True
        except TimeoutError:
            self.left_waiting += 1
        except (OSError, asyncio.IncompleteReadError):
            self.closed += 1
        return False

    def _next(self) -> bytes:
        while True:
            frame = self._requests.any()
            damaged = mutated(self._dice, frame, self._other)
            self._other = frame
            if not _is_expensive(damaged):
                self.recent.append(damaged)
                return damaged


def _is_expensive(frame: bytes) -> bool:
    body = memoryview(frame)[4:]
    try:
        call = wire.parse_call(body)
        if call.key not in (CREATE_TOPICS, CREATE_PARTITIONS):
            return False
        request = wire.decode(call, body)
    except Disconnect:
        return False
    if call.key == CREATE_PARTITIONS:
        return any(topic.count > PARTITIONS_MAX for topic in request.topics)
    return any(topic.num_partitions > PARTITIONS_MAX for topic in request.topics)


BUSY = {
    **OPEN,
    "log.retention.ms": "604800000",  # much of what comes says that it is older
    "log.retention.check.interval.ms": "1000",
}
"""Retention and access rules are at work as well."""


def fuzz(folder: Path, seed: int, rounds: int, frames: int) -> None:
    """`rounds` times `frames`, with a look at the broker's health after each."""
    with BrokerProcess(folder, BUSY) as broker:
        create_topic(broker.address, "healthy")
        with Line(broker.address) as line:
            create_topics(line, ["t0", "t1", "t2"], partitions=2)
            told = line.ask(METADATA, 12, topics=None, **NO_MORE)
            topic_ids = [topic.topic_id for topic in told.topics if topic.name != "healthy"]
        fuzzer = Fuzzer(broker.port, seed, topic_ids)
        warm_bytes = 0
        sent = []
        for number in range(rounds):
            asyncio.run(fuzzer.run(frames))
            assert broker.process.poll() is None, died(broker, fuzzer)
            sent.append(f"n-{number}")
            produce(broker.address, "healthy", [sent[-1]])
            if number == rounds // 4:
                warm_bytes = broker.rss_bytes
        assert values(broker.address, "healthy") == sent
        total = fuzzer.answered + fuzzer.closed + fuzzer.left_waiting
        assert total == rounds * frames
        assert fuzzer.answered > total // 10
        assert fuzzer.closed > total // 10
        grown = broker.rss_bytes - warm_bytes
        print(
            f"{seed=} {total=} {fuzzer.answered=} {fuzzer.closed=} {fuzzer.left_waiting=} {grown=}"
        )
        assert grown < GROWTH_MAX
        assert "Traceback" not in broker.said, broker.said[-4000:]
        assert not re.search(r" (ERROR|CRITICAL) ", broker.said), broker.said[-4000:]
        assert broker.open_files < 400
        assert broker.terminate() == 0
        broker.start()  # and what it wrote meanwhile, it can read
        assert values(broker.address, "healthy") == sent


NO_MORE = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}


def died(broker: BrokerProcess, fuzzer: Fuzzer) -> str:
    frames = "\n".join(frame.hex() for frame in fuzzer.recent)
    return f"exit code {broker.process.returncode}\n{broker.said[-4000:]}\n{frames}"


@pytest.mark.timeout(180)
def test_ten_thousand_mutated_frames_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path, seed=1, rounds=4, frames=2_500)


@pytest.mark.slow
def test_two_hundred_thousand_mutated_frames_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path, seed=2, rounds=100, frames=2_500)


def test_a_client_that_is_reset_in_the_middle_of_a_request_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "t")
        with Line(broker.address) as line:
            assert produced(line, "t", batch("before")).base_offset == 0
            files = broker.open_files
        frame = wire.encode_request(METADATA, 1, 1, "reset", {"topics": []})
        for number in range(500):
            with Line(broker.address) as line:
                line.send(frame[: number % len(frame)])
        with Line(broker.address) as line:
            assert produced(line, "t", batch("after")).base_offset == 1
            assert broker.open_files <= files + 2
        assert broker.warnings() == []

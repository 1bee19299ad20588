"""Peers that stall, flood or ask for more memory than there is: others are served all the same.

What the broker may hold for them is bounded; its memory is measured, not believed.
"""

from __future__ import annotations

import gzip
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ottla.broker.descriptors import descriptor_shares
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.bad_input.batches import packed
from tests.cluster.load import create_topic, produce, value_of, values
from tests.cluster.memory_use import rss_after_first_record
from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import (
    API_VERSIONS,
    FETCH,
    METADATA,
    PRODUCE,
    Line,
    batch,
    create_topics,
    fetch_fields,
    produce_fields,
    produced,
)
from tools.nodes import free_ports

MIB = 1 << 20
SLOW_MS = 250
"""A reply that takes longer than this, on a machine shared with others, was held up."""


@contextmanager
def many_files(wanted: int) -> Iterator[int]:
    """As many descriptors as may be had, up to this; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    may = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, may), hard))
    try:
        yield max(soft, may)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def median_ms(line: Line, topic: str, count: int = 200) -> float:
    """How long a produce takes in the middle of it all."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        assert produced(line, topic, batch("v")).error_code is ErrorCode.none
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[count // 2]


@pytest.mark.spec("NET-17")
def test_ten_thousand_idle_connections_cost_little_and_nobody_else(tmp_path: Path) -> None:
    with many_files(10_500) as files, ExitStack() as stack:
        # The broker inherits the limit.
        settings = {"flush.before.ack": "never", "socket.listen.backlog.size": "4096"}
        broker = stack.enter_context(BrokerProcess(tmp_path, settings))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(10_000, files - 500, descriptor_shares(hard).connections - 10)
        with Line(broker.address) as line:
            create_topics(line, ["t"])
            before = rss_after_first_record(broker)
            alone_ms = median_ms(line, "t")
            for _ in range(count):
                stack.enter_context(Line(broker.address))
            wait_for(lambda: broker.open_files > count, what="every connection")
            crowded_ms = median_ms(line, "t")
            each = (broker.rss_bytes - before) / count
            assert each < 12_000, f"{each:.0f} bytes a connection"
            assert crowded_ms < max(2 * alone_ms, 2.0), f"{alone_ms:.2f} to {crowded_ms:.2f} ms"
        assert broker.warnings() == []


def test_frames_that_never_end_hold_no_more_than_what_was_sent(tmp_path: Path) -> None:
    """Each claims the largest request there may be and sends a few bytes of it."""
    with BrokerProcess(tmp_path) as broker, ExitStack() as stack:
        create_topic(broker.address, "t")
        before = rss_after_first_record(broker)
        head = struct.pack(">ihhi", 100 * MIB, PRODUCE, 9, 1)
        for _ in range(500):
            stack.enter_context(Line(broker.address)).send(head + bytes(100))
        with Line(broker.address) as line:
            assert median_ms(line, "t", 20) < SLOW_MS
        assert broker.rss_bytes - before < 32 * MIB


def test_half_open_connections_and_resets_leave_nothing_behind(tmp_path: Path) -> None:
    """A peer that stops in mid-frame and never says goodbye, then is reset."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "t")
        with Line(broker.address) as line:
            assert produced(line, "t", batch("one")).base_offset == 0
            files = broker.open_files
            request = wire.encode_request(PRODUCE, 9, 1, "x", produce_fields("t", batch("cut")))
            peers = [Line(broker.address) for _ in range(300)]
            for peer in peers:
                peer.send(request[:-7])
            assert produced(line, "t", batch("two")).base_offset == 1
            for peer in peers:  # RST, not FIN
                linger = struct.pack("ii", 1, 0)
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                peer.socket.close()
            wait_for(lambda: broker.open_files <= files + 2, what="their descriptors")
            assert produced(line, "t", batch("three")).base_offset == 2
        assert "Traceback" not in broker.said


def test_a_produce_whose_client_is_reset_is_stored_once(tmp_path: Path) -> None:
    """Its retry, by sequence, is told where the first one went."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "t")
        for number in range(50):
            content = batch(f"n-{number}", producer_id=1, producer_epoch=0, base_sequence=number)
            with Line(broker.address) as line:
                line.send(wire.encode_request(PRODUCE, 9, 1, "x", produce_fields("t", content)))
            with Line(broker.address) as line:
                again = produced(line, "t", content)
                assert (again.error_code, again.base_offset) == (ErrorCode.none, number)


def test_slow_readers_of_large_replies_hold_no_memory(tmp_path: Path) -> None:
    """A fetch is sent from the file: a hundred that wait cost the broker nothing."""
    with BrokerProcess(tmp_path, {"flush.before.ack": "never"}) as broker, ExitStack() as stack:
        create_topic(broker.address, "large")
        names = [f"n-{number}" for number in range(200)]
        produce(broker.address, "large", names, size=100_000)
        before = rss_after_first_record(broker, "large")
        fields = fetch_fields("large", partition_max_bytes=50 * MIB)
        fetch = wire.encode_request(FETCH, 12, 1, "slow", {**fields, "max_bytes": 50 * MIB})
        slow = [stack.enter_context(Line(broker.address)) for _ in range(100)]
        for line in slow:
            line.send(fetch)
        with Line(broker.address) as line:
            create_topics(line, ["t"])
            assert median_ms(line, "t", 50) < SLOW_MS
        assert broker.rss_bytes - before < 32 * MIB
        reply = slow[0].receive()  # and it is whole, when at last it is read
        assert reply is not None
        told = wire.decode_reply(FETCH, 12, memoryview(reply))
        assert len(bytes(told.responses[0].partitions[0].records)) > 15 * MIB


def test_peers_that_never_read_are_held_to_their_share(tmp_path: Path) -> None:
    """Replies made in memory, as Metadata's, are stopped early: what waits is bounded."""
    with BrokerProcess(tmp_path) as broker, ExitStack() as stack:
        with Line(broker.address) as line:
            create_topics(line, [f"t{number}" for number in range(50)], partitions=10)
        ask = wire.encode_request(METADATA, 1, 1, "never", {"topics": None})
        before = rss_after_first_record(broker, "t0")
        for _ in range(40):
            line = stack.enter_context(Line(broker.address))
            line.socket.setblocking(False)
            try:
                for _ in range(20_000):
                    line.socket.send(ask)
            except BlockingIOError:
                pass
        with Line(broker.address) as line:
            assert median_ms(line, "t0", 20) < 20 * SLOW_MS  # it has a turn among them
        assert broker.rss_bytes - before < 150 * MIB


def test_waiting_fetches_of_clients_that_left_are_forgotten(tmp_path: Path) -> None:
    """Each asked to wait for as long as a number can say, and was gone a moment later."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "t")
        fields = {**fetch_fields("t"), "max_wait": 2**31 - 1}
        fetch = wire.encode_request(FETCH, 12, 1, "gone", fields)

        def come_and_go(count: int) -> None:
            for _ in range(count):
                with Line(broker.address) as line:
                    line.send(fetch * 50)
                    line.send(wire.encode_request(API_VERSIONS, 0, 1, "gone", {}))

        come_and_go(100)
        before = broker.rss_bytes
        come_and_go(400)
        assert broker.rss_bytes - before < 4 * MIB  # two hundred bytes each would be that
        assert produced_after(broker, "t") == 0


def produced_after(broker: BrokerProcess, topic: str) -> int:
    with Line(broker.address) as line:
        answer = produced(line, topic, batch("v"))
        assert answer.error_code is ErrorCode.none
        offset: int = answer.base_offset
        return offset


def test_bombs_are_refused_within_bounded_memory(tmp_path: Path) -> None:
    """Many at a time, each a small batch that would inflate to a gigabyte."""
    with BrokerProcess(tmp_path, {"record.validation": "full"}) as broker:
        create_topic(broker.address, "t")
        bomb = packed(gzip.compress(bytes(512 * MIB), 9), attributes=1)
        assert len(bomb) < MIB
        before = rss_after_first_record(broker)
        peak = [0]

        def throw() -> None:
            with Line(broker.address, timeout_s=60) as line:
                for _ in range(3):
                    answer = produced(line, "t", bomb)
                    assert answer.error_code is ErrorCode.invalid_record
                    peak[0] = max(peak[0], broker.rss_bytes)

        threads = [threading.Thread(target=throw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 0 < peak[0] - before < 250 * MIB
        wait_for(lambda: broker.rss_bytes - before < 150 * MIB, what="the memory")


def test_a_value_as_large_as_allowed_is_no_bomb(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, {"message.max.bytes": str(20 * MIB)}) as broker:
        create_topic(broker.address, "t")
        large = {"message.max.bytes": 20 * MIB}
        produce(broker.address, "t", ["large"], size=10 * MIB, **large)
        assert values(broker.address, "t") == ["large"]
        assert len(value_of("large", 10 * MIB)) > 10 * MIB


LIMIT = 512 * MIB
REQUESTS = LIMIT // 4
"""The share of requests; to it comes what is copied on its way, and what a connection takes."""
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
UNFINISHED: dict[str, bytes] = {
    "frames of half a megabyte without their last byte": struct.pack(">i", 512 << 10)
    + bytes((512 << 10) - 1),
    "a size and no more": struct.pack(">i", 512 << 10),
    "a login that stops": wire.encode_request(17, 1, 1, "hostile", {"mechanism": "PLAIN"}),
    "frames that are refused": wire.encode_request(METADATA, 1, 1, "hostile", {"topics": None}),
}


@pytest.mark.spec("NET-17", "NET-20", "SEC-05")
@pytest.mark.parametrize("sent", UNFINISHED)
def test_a_thousand_hostile_connections_before_a_login_take_bounded_memory(
    tmp_path: Path, sent: str
) -> None:
    """Even what all of them may say before they are closed is more than there is."""
    settings = {
        "memory.limit.bytes": str(LIMIT),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f'{JAAS} user_alice="secret";',
        "socket.listen.backlog.size": "4096",
    }
    count = 1_000
    with many_files(2 * count + 500), ExitStack() as stack:
        broker = BrokerProcess(tmp_path, settings)
        clients = f"{broker.host}:{free_ports(1)[0]}"
        broker.listeners.append(f"CLIENTS://{clients}")
        stack.enter_context(broker)
        create_topic(broker.address, "t")
        before = rss_after_first_record(broker)
        most = 0
        peers = []
        for _ in range(count):
            peer = stack.enter_context(Line(clients))
            peer.socket.setblocking(False)
            peers.append((peer, memoryview(UNFINISHED[sent])))
        with Line(broker.address) as line:
            for _ in range(40):
                peers = [(peer, left) for peer, left in map(push, peers) if left]
                assert produced(line, "t", batch("v")).error_code is ErrorCode.none
                most = max(most, broker.rss_bytes)
            assert median_ms(line, "t", 20) < SLOW_MS
        assert most - before < REQUESTS + 90 * MIB
        assert "Traceback" not in broker.said


def push(peer: tuple[Line, memoryview]) -> tuple[Line, memoryview]:
    """Send what the connection takes of what is left."""
    line, left = peer
    try:
        return line, left[line.socket.send(left) :]
    except BlockingIOError:
        return peer
    except OSError:  # the broker has closed it
        return line, left[:0]

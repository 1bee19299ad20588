"""What the bytes of a request cost: parsing, decoding, replying, and checking records.

Prints microseconds and asserts nothing: `python benchmarks/wire.py`. Compares
`ottla.protocol.hot` and `ottla.protocol.length_check` with what kio alone costs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.hot import (
    FetchedPartition,
    ProducedPartition,
    decode_produce,
    fetch_reply,
    produce_reply,
)
from ottla.protocol.records import record
from ottla.protocol.records.batch import build, crc_ok, read_header
from ottla.protocol.records.record import NewRecord

SECONDS = 0.2


def measure(name: str, call: Callable[[], object], per: int = 1) -> None:
    """Print the best of five rounds of CPU time, in microseconds per `per` things done."""
    call()
    start, rounds = process_time(), 0
    while process_time() - start < SECONDS / 10:
        call()
        rounds += 1
    best = float("inf")
    for _ in range(5):
        start = process_time()
        for _ in range(rounds):
            call()
        best = min(best, (process_time() - start) / rounds)
    print(f"{name:<44} {best / per * 1e6:9.3f} us")


def produce_frame(version: int, records: bytes) -> memoryview:
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": records}]}
    fields = {"acks": -1, "timeout": 30_000, "topic_data": [topic]}
    return memoryview(wire.encode_request(0, version, 7, "producer-1", fields))[4:]


def produce() -> None:
    small = build([NewRecord(None, bytes(100))])
    for size, batch in (("100 B", small), ("1 MB", build([NewRecord(None, bytes(1 << 20))]))):
        for version in (8, 9):
            frame = produce_frame(version, batch)
            call = wire.parse_call(frame)
            if size == "100 B" and version == 9:
                measure("parse_call", lambda frame=frame: wire.parse_call(frame))  # type: ignore[misc]
            measure(
                f"decode_produce v{version}, one partition, {size}",
                lambda call=call, frame=frame: decode_produce(call, frame),  # type: ignore[misc]
            )
        measure(
            f"  the same v9 by kio with the guard, {size}",
            lambda call=call, frame=frame: wire.decode(call, frame),  # type: ignore[misc]
        )
        measure(f"crc_ok, {size}", lambda batch=batch: crc_ok(batch))  # type: ignore[misc]
    call = wire.Call(0, 9, 7, None, 0)
    results = [("orders", [ProducedPartition(0, ErrorCode.none, 12_345, -1, 0)])]
    measure("produce_reply v9, one partition", lambda: produce_reply(call, results))


def fetch() -> None:
    partition = {"partition": 0, "fetch_offset": 9, "partition_max_bytes": 1 << 20}
    fields = {
        "max_wait": 500,
        "min_bytes": 1,
        "topics": [{"topic": "orders", "partitions": [partition]}],
        "forgotten_topics_data": [],
    }
    frame = memoryview(wire.encode_request(1, 12, 7, "consumer-1", fields))[4:]
    call = wire.parse_call(frame)
    measure("decode Fetch v12, one partition", lambda: wire.decode(call, frame))
    shown = [("orders", [FetchedPartition(0, ErrorCode.none, 10, 10, 0, records=b"x" * 100)])]
    measure(
        "fetch_reply v12, one partition",
        lambda: fetch_reply(call, 0, ErrorCode.none, 0, shown),
    )


def others() -> None:
    beat = {"group_id": "group", "generation_id": 1, "member_id": "member"}
    frame = memoryview(wire.encode_request(12, 4, 7, "consumer-1", beat))[4:]
    call = wire.parse_call(frame)
    measure("decode Heartbeat v4", lambda: wire.decode(call, frame))
    measure("reply Heartbeat v4", lambda: wire.reply(call, {"error_code": ErrorCode.none}))


def records() -> None:
    batch = build([NewRecord(b"key", bytes(100), timestamp=at) for at in range(5_000)])
    header, section = read_header(batch), memoryview(batch)[61:]
    count = header.count
    measure(
        "validate_records, plain, per record",
        lambda: record.validate_records(section, header, dense=True),
        per=count,
    )
    measure("read_records, per record", lambda: list(record.read_records(batch)), per=count)
    try:
        from ottla.protocol.records import columns
    except ImportError:
        print("validate_records, native: numba is not installed")
        return
    measure(
        "validate_records, native, per record",
        lambda: columns.validate_records(section, header, dense=True),
        per=count,
    )


if __name__ == "__main__":
    produce()
    fetch()
    others()
    records()

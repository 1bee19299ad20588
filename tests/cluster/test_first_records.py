"""The first records after a start are examined as thoroughly as any later ones.

Requests are sent all at once, so that the first of them come before the native kernels are loaded:
loading begins with the first record, and takes many times as long as a request.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.records.compression import Codec
from tests.bad_input.batches import DAMAGED, packed, record
from tests.cluster.process import BrokerProcess
from tests.raw_requests import PRODUCE, Line, batch, create_topics, fetched, produce_fields

VERSION: Final = 9
RECORD_BY_RECORD: Final = (
    "fewer records than counted",
    "more records than counted",
    "deltas out of order",
    "the same delta twice",
    "record length past the end",
    "record longer than its contents",
    "key past the end",
    "header count huge",
    "gzip that is none",
)


def large(last_delta: int, *, codec: Codec = Codec.NONE) -> bytes:
    """Tens of thousands of records, the last of which claims this place among them."""
    count = 30_000
    deltas = (*range(count - 1), last_delta)
    section = b"".join(record(delta=delta) for delta in deltas)
    if codec is Codec.GZIP:
        section = gzip.compress(section)
    return packed(section, count=count, attributes=int(codec))


def all_at_once(line: Line, topic: str, batches: list[bytes | None]) -> list[Any]:
    """What is said of each, in order; nobody waits for a reply before the next is sent."""
    for records in batches:
        line.send_request(PRODUCE, VERSION, **produce_fields(topic, records, acks=1))
    said = []
    for _ in batches:
        reply = line.receive()
        assert reply is not None
        answer = wire.decode_reply(PRODUCE, VERSION, memoryview(reply))
        said.append(answer.responses[0].partition_responses[0])
    return said


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_malformed_records_are_refused_from_the_first_batch_on(tmp_path: Path, mode: str) -> None:
    bad = [DAMAGED[name][0] for name in RECORD_BY_RECORD]
    bad += [large(0), large(0, codec=Codec.GZIP)]
    sent = [content for one in bad for content in (one, batch("good"))]
    sent += [large(29_999), large(29_999, codec=Codec.GZIP), batch("last")]
    with (
        BrokerProcess(tmp_path, {"record.validation": mode}) as broker,
        Line(broker.address) as line,
    ):
        create_topics(line, ["t"])
        assert "native kernels" not in broker.said, "nothing was produced yet"
        said = all_at_once(line, "t", sent)
        end = fetched(line, "t", 0).high_watermark
    count = len(bad)
    assert [one.error_code for one in said[: 2 * count : 2]] == [ErrorCode.invalid_record] * count
    good = [*said[1 : 2 * count : 2], *said[2 * count :]]
    assert [one.error_code for one in good] == [ErrorCode.none] * len(good)
    offsets = [*range(count), count, count + 30_000, count + 60_000]
    assert [one.base_offset for one in good] == offsets, "as they were sent"
    assert end == count + 60_001

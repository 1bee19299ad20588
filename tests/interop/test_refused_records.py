"""A refused batch names the records that are wrong as Apache Kafka does: field by field."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord
from tests.raw_requests import PRODUCE, Line, create_topics, produce_fields
from tools import kafka_cache, nodes

VERSIONS: Final = (8, 9, 12)
TOPICS: Final[dict[str, dict[str, str]]] = {
    "limited": {"message_timestamp_before_max_ms": "21600000"},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "stamped-gzip": {"message_timestamp_type": "LogAppendTime", "compression_type": "gzip"},
}
NOW_MS: Final = int(time.time() * 1000)
DAY_MS: Final = 86_400_000


def batch(*records: tuple[bytes | None, int], codec: Codec = Codec.NONE, by: int = 0) -> bytes:
    new = [NewRecord(key, b"value", timestamp=stamp) for key, stamp in records]
    return build(new, codec=codec, timestamp_type=by, max_timestamp=max(r[1] for r in records))


def stamped(*stamps: int, **more: Any) -> bytes:
    return batch(*((b"k", stamp) for stamp in stamps), **more)


def keyed(*keys: bytes | None, **more: Any) -> bytes:
    return batch(*((key, NOW_MS) for key in keys), **more)


CASES: Final[dict[str, tuple[str, bytes]]] = {
    "timestamps": ("limited", stamped(NOW_MS, 5, NOW_MS + DAY_MS, -1, NOW_MS - DAY_MS)),
    "timestamps, packed": ("limited", stamped(5, NOW_MS, NOW_MS + DAY_MS, codec=Codec.GZIP)),
    "no timestamps": ("limited", stamped(-1, -1)),
    "an old one behind none": ("limited", stamped(-1, 5)),
    "null keys": ("compacted", keyed(b"a", None, b"b", None)),
    "many null keys": ("compacted", keyed(*[None] * 7, b"a", codec=Codec.LZ4)),
    "null keys and timestamps": (
        "compacted",
        batch((None, NOW_MS + DAY_MS), (b"k", NOW_MS), (b"k", NOW_MS + DAY_MS), (None, NOW_MS)),
    ),
    "append time claimed": ("stamped", keyed(b"a", None, by=1)),
    "append time claimed, packed": ("stamped", keyed(b"a", None, by=1, codec=Codec.ZSTD)),
    "append time claimed, to be packed": ("stamped-gzip", keyed(b"a", None, by=1)),
    "append time claimed, packed as asked": (
        "stamped-gzip",
        keyed(b"a", None, by=1, codec=Codec.GZIP),
    ),
    "append time claimed elsewhere": ("limited", stamped(NOW_MS, NOW_MS, by=1)),
    "append time claimed elsewhere, of no time": ("limited", stamped(-1, -1, by=1)),
    "append time claimed elsewhere, out of range": ("limited", stamped(5, 5, by=1)),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Line, Line]]:
    """A connection to Apache Kafka, and one to Ottla."""
    folder = tmp_path_factory.mktemp("refused")
    try:
        with (
            nodes.kafka(folder / "kafka", options=nodes.QUICK_JVM) as kafka,
            nodes.ottla(folder / "ottla") as ottla,
            Line(kafka.bootstrap) as one,
            Line(ottla.bootstrap) as two,
        ):
            for line in (one, two):
                for topic, settings in TOPICS.items():
                    create_topics(line, [topic], 1, **settings)
                    until_led(line, topic)
            yield one, two
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


def until_led(line: Line, topic: str) -> None:
    deadline = time.monotonic() + 30
    while said(line, topic, keyed(b"k"), 9)[0] != 0:
        assert time.monotonic() < deadline, topic
        time.sleep(0.1)


def said(line: Line, topic: str, records: bytes, version: int) -> tuple[Any, ...]:
    """Every field of the reply that is not about a time of its own."""
    reply = line.ask(PRODUCE, version, **produce_fields(topic, records))
    one = reply.responses[0].partition_responses[0]
    errors = [
        (error.batch_index, _without_bounds(error.batch_index_error_message))
        for error in one.record_errors
    ]
    code = int(one.error_code)
    first = one.base_offset if code else min(one.base_offset, 0)
    return code, first, one.log_start_offset, errors, _without_bounds(one.error_message)


def _without_bounds(text: str | None) -> str | None:
    """What is in range depends on when it is asked."""
    return None if text is None else re.sub(r"within \[-?\d+, -?\d+\]", "within [a, b]", text)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_a_refused_batch_is_answered_field_by_field_as_kafka_answers_it(
    both: tuple[Line, Line], case: str, version: int
) -> None:
    kafka, ottla = both
    topic, records = CASES[case]
    assert said(ottla, topic, records, version) == said(kafka, topic, records, version)

"""The same promises for every client: what it writes it reads, and it hears the right refusals.

The names of these tests are the rows of `docs/clients-matrix.md`.
"""

from __future__ import annotations

import pytest

from tests.interop.client import Client, Fault, Found, Position, Refusal
from tests.interop.conftest import CLIENTS, MakeTopic, Opened
from tests.interop.series import STEP_MS, Series, digest

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def expected(series: Series, *, stamped: bool) -> Found:
    return Found(series.count, digest(series, stamped=stamped))


@pytest.mark.spec("TOOL-18", "WIRE-29")
def test_topics_are_created_as_asked(client: Client) -> None:
    topic = f"created-by-{client.name}"
    client.create_topic(topic, 5, {"retention.ms": "123456", "cleanup.policy": "compact"})
    assert client.partition_count(topic) == 5
    assert client.settings(topic)["retention.ms"] == "123456"
    assert client.settings(topic)["cleanup.policy"] == "compact"


@pytest.mark.spec("TOOL-18")
def test_partitions_are_added(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    client.add_partitions(topic, 6)
    assert client.partition_count(topic) == 6


@pytest.mark.spec("TOOL-18")
def test_settings_are_changed_and_told(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.alter(topic, {"max.message.bytes": "54321"})
    assert client.settings(topic)["max.message.bytes"] == "54321"


@pytest.mark.spec("TOOL-18")
def test_topics_are_deleted(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.delete_topic(topic)
    assert client.provoke(Fault.UNKNOWN_TOPIC, topic).code == Fault.UNKNOWN_TOPIC.value


@pytest.mark.spec("WIRE-07", "WIRE-09", "WIRE-10", "WIRE-12", "REC-11", "REC-26")
@pytest.mark.parametrize("codec", CODECS)
def test_twenty_thousand_records_are_read_back(
    client: Client, make_topic: MakeTopic, base_ms: int, codec: str
) -> None:
    topic = make_topic()
    series = Series(20_000, base_ms if client.stamps else -1)
    client.produce(topic, series, codec)
    found = client.read(topic, series.count, stamped=client.stamps)
    assert found == expected(series, stamped=client.stamps)


@pytest.mark.spec("REC-25")
def test_null_keys_and_values_survive(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    series = Series(100, -1, headers="without")
    assert any(sample.key is None for sample in series)
    assert any(sample.value is None for sample in series)
    client.produce(topic, series, "none")
    assert client.read(topic, 100, stamped=False) == expected(series, stamped=False)


@pytest.mark.spec("REC-22")
def test_headers_survive(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    series = Series(1, -1, headers="plain")
    client.produce(topic, series, "none")
    assert client.read(topic, 1, stamped=False) == expected(series, stamped=False)


@pytest.mark.spec("REC-22")
def test_null_headers_survive(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    series = Series(1, -1, headers="null")
    client.produce(topic, series, "none")
    assert client.read(topic, 1, stamped=False) == expected(series, stamped=False)


def test_a_record_of_one_mebibyte_passes_where_limits_allow(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes=str(2 << 20))
    series = Series(1, -1, value_bytes=1 << 20)
    client.produce(topic, series, "none")
    assert client.read(topic, 1, stamped=False) == expected(series, stamped=False)


def test_records_of_every_other_client_are_read(
    client: Client, written_by_all: tuple[str, int, str]
) -> None:
    topic, count, known = written_by_all
    assert client.read(topic, count, stamped=False) == Found(count, known)


@pytest.mark.spec("WIRE-40")
def test_offsets_are_found_by_timestamp(client: Client, stamped_topic: str, base_ms: int) -> None:
    topic = stamped_topic
    assert client.offset_at(topic, Position.EARLIEST) == 0
    assert client.offset_at(topic, Position.LATEST) == 1000
    assert client.offset_at(topic, base_ms) == 0
    assert client.offset_at(topic, base_ms + 700 * STEP_MS) == 700
    assert client.offset_at(topic, base_ms + 699 * STEP_MS + 1) == 700
    # kcat and librdkafka before 2.x answer "the end" where the broker says "none".
    assert client.offset_at(topic, base_ms + 10_000 * STEP_MS) in (None, 1000)


def test_the_latest_timestamp_is_found(client: Client, stamped_topic: str) -> None:
    assert client.offset_at(stamped_topic, Position.MAX_TIMESTAMP) == 999


@pytest.mark.spec("TOOL-18")
def test_records_are_deleted_up_to_an_offset(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, Series(1000, -1), "none")
    client.delete_records(topic, 600)
    assert client.offset_at(topic, Position.EARLIEST) == 600
    assert client.offset_at(topic, Position.LATEST) == 1000


def test_a_first_record_creates_its_topic(client: Client) -> None:
    topic = f"created-by-a-record-of-{client.name}"
    series = Series(3, -1)
    client.produce(topic, series, "none")
    assert client.read(topic, 3, stamped=False) == expected(series, stamped=False)


@pytest.mark.spec("WIRE-53")
def test_too_large_a_record_is_refused(client: Client, make_topic: MakeTopic) -> None:
    assert_refused(client, Fault.TOO_LARGE, make_topic())


@pytest.mark.spec("WIRE-53")
def test_an_unknown_topic_is_refused(client: Client) -> None:
    assert_refused(client, Fault.UNKNOWN_TOPIC, "no-such-topic")


@pytest.mark.spec("WIRE-53")
def test_an_offset_out_of_range_is_refused(client: Client, stamped_topic: str) -> None:
    assert_refused(client, Fault.OUT_OF_RANGE, stamped_topic)


@pytest.mark.spec("WIRE-53")
def test_a_bad_topic_name_is_refused(client: Client) -> None:
    assert_refused(client, Fault.BAD_NAME, "bad name!")


def assert_refused(client: Client, fault: Fault, topic: str) -> None:
    refusal = client.provoke(fault, topic)
    assert refusal == Refusal(client.refusals[fault], fault.value)


@pytest.fixture(scope="session")
def stamped_topic(make_topic: MakeTopic, opened: Opened, base_ms: int) -> str:
    """A thousand records with known timestamps."""
    topic = make_topic()
    opened("confluent-kafka").produce(topic, Series(1000, base_ms), "none")
    return topic


@pytest.fixture(scope="session")
def written_by_all(make_topic: MakeTopic, opened: Opened) -> tuple[str, int, str]:
    """One log that every client has written to with every codec; its length and its digest."""
    topic = make_topic()
    series = Series(50, -1)
    samples = []
    for name in CLIENTS:
        for codec in CODECS:
            opened(name).produce(topic, series, codec)
            samples += list(series)
    return topic, len(samples), digest(samples, stamped=False)
